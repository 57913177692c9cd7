import type { Rota } from "../interface/rota.ts";
import type { RotaEvent } from "../model/event.ts";

/** Long enough for a slow machine. A test that waits in vain fails with a message. */
const PATIENCE_MS = 5_000;

/**
 * Waits until `condition` holds. Checks it after every turn of the event loop.
 *
 * @example
 * await until(() => seen.length === 3, "three events");
 */
export async function until(
  condition: () => boolean | Promise<boolean>,
  what = "the condition to hold",
): Promise<void> {
  const giveUpAt = performance.now() + PATIENCE_MS;
  while (!(await condition())) {
    if (performance.now() > giveUpAt) throw new Error(`waited ${PATIENCE_MS} ms in vain for ${what}`);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/**
 * Resolves with the next event that fits. Call it before the action that causes the event.
 *
 * @example
 * const started = nextEvent(rota, (event) => event.type === "task.started");
 * await rota.tasks.submit({ message: "hello" });
 * await started;
 */
export function nextEvent(rota: Rota, fits: (event: RotaEvent) => boolean = () => true): Promise<RotaEvent> {
  return new Promise((resolve) => {
    const undo = rota.onEvent((event) => {
      if (!fits(event)) return;
      undo();
      resolve(event);
    });
  });
}

/** A promise that a test resolves itself: an executor that waits for it runs exactly as long as the test wants. */
export class Latch<T = void> {
  readonly opened: Promise<T>;
  readonly open: (value: T) => void;

  constructor() {
    const { promise, resolve } = Promise.withResolvers<T>();
    this.opened = promise;
    this.open = resolve;
  }
}
