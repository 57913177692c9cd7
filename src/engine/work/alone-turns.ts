/** How often it is looked up whether a task waits that runs alone: signals do not say. */
const LOOK_MS = 5_000;

/**
 * After a start the others have so long: a process that dies again and again with a task that runs alone would otherwise run
 * nothing else.
 */
export const OTHERS_FIRST_MS = 5_000;

/**
 * - `open`: tasks start as usual.
 * - `closing`: none starts; as soon as nothing runs any more, the one that runs alone does.
 * - `alone`: that one runs.
 */
export type AlonePhase = "open" | "closing" | "alone";

/**
 * Whose turn it is in this process: that of one task that runs alone, or of all others. Neither starves. While one waits,
 * the process starts no others, so that its wait is bounded by the timeouts of what runs. After its turn the others have as
 * much time as they had to stand back: half of the time at least is theirs. After a start they go first.
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

  /** How long until it is time to look for a task that runs alone. Times are of the monotonic clock. */
  lookInMs(now: number): number {
    if (this.#phase !== "open") return Number.POSITIVE_INFINITY;
    return Math.max(this.#lookAt - now, this.#openUntil - now, 0);
  }

  /** One may have come: it is looked for at the next turn. */
  lookSoon(): void {
    this.#lookAt = Number.NEGATIVE_INFINITY;
  }

  /** What a look found. */
  looked(now: number, { waits }: { waits: boolean }): void {
    this.#lookAt = now + LOOK_MS;
    if (!waits) return;
    this.#phase = "closing";
    this.#closedAt = now;
  }

  began(): void {
    this.#phase = "alone";
  }

  /** It ended, or there was none to start after all. */
  reopen(now: number): void {
    // There may be another, whose turn is after that of the others.
    if (this.#phase === "alone") this.lookSoon();
    this.#phase = "open";
    this.#openUntil = now + (now - this.#closedAt);
  }
}
