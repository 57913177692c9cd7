import type { LocalKeys } from "../interface/keys.ts";
import type { SizedReading } from "../interface/tasks.ts";
import { RotaError } from "../model/errors.ts";
import { optionalNumber } from "../model/input/field-checks.ts";
import type { Task } from "../model/task.ts";
import type { CallerContext } from "./caller-context.ts";
import { RequestSlots } from "./request-slots.ts";

/** Many proxies do not wait longer than this for a response either. */
const WAIT_MAX_SEC = 60;
const WAITS_MAX = 10_000;
const WAITS_PER_KEY_MAX = 2_500;

/** Requests that wait for the end of a task. */
export class TaskWaits {
  readonly #keys: Pick<LocalKeys, "watch">;
  readonly #slots: RequestSlots;
  readonly #closing = new AbortController();

  /** `max` is for tests: the most waits at once. */
  constructor(
    keys: Pick<LocalKeys, "watch">,
    { max = WAITS_MAX, hasSecondTenant }: { readonly max?: number; readonly hasSecondTenant: () => boolean },
  ) {
    this.#keys = keys;
    this.#slots = new RequestSlots({
      max,
      maxEach: WAITS_PER_KEY_MAX,
      what: "requests that wait for a task",
      hasSecondTenant,
    });
  }

  get size(): number {
    return this.#slots.taken;
  }

  /**
   * Returns the task once it has ended, or as it is once `seconds` are over or the server closes. A draining node keeps waiting,
   * since running tasks can still end. `gone` fires when the caller disconnects.
   */
  async wait(
    callerContext: CallerContext,
    taskId: string,
    { seconds, ...waiting }: { seconds: unknown; gone: AbortSignal } & SizedReading,
  ): Promise<Task> {
    const timeoutMs = checkSeconds(seconds) * 1_000;
    return this.holding(callerContext, () =>
      this.untilEnded(callerContext, taskId, { timeoutMs, ...waiting }),
    );
  }

  /** Holds a slot while `work` runs, for a request that does something before it waits. Throws `rate_limited`. */
  async holding<T>({ key, caller: { tenant } }: CallerContext, work: () => Promise<T>): Promise<T> {
    const freeSlot = this.#slots.take({ key, tenant });
    try {
      return await work();
    } finally {
      freeSlot();
    }
  }

  /** Like `wait`, but takes no slot. */
  async untilEnded(
    { key, rota: { tasks } }: CallerContext,
    taskId: string,
    { timeoutMs, gone, onSize }: { readonly timeoutMs: number; readonly gone: AbortSignal } & SizedReading,
  ): Promise<Task> {
    const watch = key === null ? null : this.#keys.watch(key);
    const signal = AbortSignal.any([gone, this.#closing.signal, ...(watch === null ? [] : [watch.gone])]);
    try {
      return await tasks.wait(taskId, { timeoutMs, signal, onSize });
    } catch (error) {
      if (error instanceof RotaError && error.code !== "draining") throw error;
      if (watch?.gone.aborted) throw new RotaError("unauthorized", "this API key was deleted or has expired");
      return await tasks.get(taskId, { onSize });
    } finally {
      watch?.stop();
    }
  }

  /** Ends all waits at once. */
  close(): void {
    this.#closing.abort();
  }
}

function checkSeconds(seconds: unknown): number {
  const range = { min: 1, max: WAIT_MAX_SEC, unit: "seconds" };
  return optionalNumber({ wait: seconds }, "wait", range) as number;
}
