import { nextDeliveryAt } from "./pending-deliveries.ts";
import type { World } from "./world.ts";

const LOOK_MS = 500;
/** Who had no trouble for so long has got over what was before: the longest wait after a failure is 5 seconds. */
const CALM_MS = 8_000;
/** How late something may be then: a timer hits its moment, a look now and then comes after 5 seconds. */
const LATE_MS = { timer: 1_000, look: 6_000 } as const;

/** Complains of what is due and left undone, although there is a process that could do it. */
export function watchPunctuality(world: World): void {
  const { agenda, outside, storage, worst } = world;
  const tasks = new Overdue(world, "tasks", LATE_MS.look);
  const schedules = new Overdue(world, "schedules", LATE_MS.timer);
  const callbacks = new Overdue(world, "callbacks", LATE_MS.timer);
  const next = () =>
    outside.plan(LOOK_MS, "the test looks for what is overdue", () => {
      const isCalm = world.processes.some(({ calmSince }) => agenda.now - calmSince >= CALM_MS);
      void tasks.look(storage.tasks.nextDueAt(), isCalm);
      // A process that gets no signal of a schedule or a callback finds it by polling every half a minute.
      const isReported = isCalm && worst.signals.lost === null;
      void schedules.look(storage.schedules.nextDueAt(), isReported);
      void callbacks.look(nextDeliveryAt(world), isReported);
      next();
    });
  next();
}

/** What is due next of one kind, and since when it has been seen to be so: what was due long ago may have come back. */
class Overdue {
  readonly #world: World;
  readonly #what: string;
  readonly #mostMs: number;
  #seen: { readonly dueAt: number; readonly since: number } | null = null;

  constructor(world: World, what: string, mostMs: number) {
    this.#world = world;
    this.#what = what;
    this.#mostMs = mostMs;
  }

  async look(nextDueAt: Promise<number | null>, mayComplain: boolean): Promise<void> {
    const { clock, agenda } = this.#world;
    const [now, dueAt] = [clock.now(), await nextDueAt];
    if (dueAt === null || dueAt > now) this.#seen = null;
    else if (this.#seen?.dueAt !== dueAt) this.#seen = { dueAt, since: agenda.now };
    else if (mayComplain && agenda.now - this.#seen.since > this.#mostMs)
      this.#world.complain(`${this.#what} are overdue at ${agenda.now}, and no process acts on them`);
  }
}
