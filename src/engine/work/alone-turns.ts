/** How often the dispatcher checks whether a task waits that runs alone: signals do not say so. */
const LOOK_MS = 5_000;

/**
 * How long the other tasks go first after a start of the process. Without it, a process that crashes again and again with a
 * task that runs alone would run nothing else.
 */
export const OTHERS_FIRST_MS = 5_000;

/**
 * - `open`: tasks start as usual.
 * - `closing`: no task starts. As soon as nothing runs any more, the task that runs alone is claimed.
 * - `alone`: the task that runs alone is running.
 */
export type AlonePhase = "open" | "closing" | "alone";

/**
 * Decides whose turn it is in this process: one task that runs alone, or all others. Neither starves. While a task waits to
 * run alone, the process starts no others, so that its wait is bounded by the timeouts of the running tasks. After its turn the
 * others get as much time as they had to wait: at least half of the time. After a start of the process the others go first.
 */
export class AloneTurns {
  #phase: AlonePhase = "open";
  #closedAt = 0;
  #openUntil: number;
  #lookAt = Number.NEGATIVE_INFINITY;

  constructor(startedAt: number) {
    this.#openUntil = startedAt + OTHERS_FIRST_MS;
  }

  get phase(): AlonePhase {
    return this.#phase;
  }

  /** How long until the next check for a task that runs alone. Times are of the monotonic clock. */
  lookInMs(now: number): number {
    if (this.#phase !== "open") return Number.POSITIVE_INFINITY;
    return Math.max(this.#lookAt - now, this.#openUntil - now, 0);
  }

  /** There may be a task that runs alone: check at the next turn. */
  lookSoon(): void {
    this.#lookAt = Number.NEGATIVE_INFINITY;
  }

  /** The result of a check. */
  looked(now: number, { waits }: { waits: boolean }): void {
    this.#lookAt = now + LOOK_MS;
    if (!waits) return;
    this.#phase = "closing";
    this.#closedAt = now;
  }

  began(): void {
    this.#phase = "alone";
  }

  /** The task ended, or there was none to claim after all. */
  reopen(now: number): void {
    // There may be another task that runs alone. The others get their turn before it.
    if (this.#phase === "alone") this.lookSoon();
    this.#phase = "open";
    this.#openUntil = now + (now - this.#closedAt);
  }
}
