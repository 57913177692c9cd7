/** The weight of the newest measurement in an average. */
const NEWEST = { run: 0.1, exchange: 0.2 } as const;

/**
 * How long ends wait for others before they are written, while enough tasks are held ahead to keep all slots busy: an exchange
 * costs much the same for one end as for ten.
 */
export const LINGER_MS = 5;

/** How many tasks a node claims ahead at most for each slot. About half of them begin before the claim is answered. */
const PER_SLOT_MAX = 4;

/** Tasks shorter than this count as this long. */
const RUN_MS_MIN = 0.01;

/**
 * How many tasks to claim ahead: as many as end during an exchange, which is its duration times the slots by the duration of a
 * task (Little's law). In a lane of long tasks that is less than one, and nothing is claimed ahead.
 */
export class LookAhead {
  /** By lane: how long its tasks run on average. */
  readonly #runMs = new Map<string, number>();
  #exchangeMs = 0;

  /** An attempt of this lane ran this long. */
  ran(lane: string, ms: number): void {
    const known = this.#runMs.get(lane);
    this.#runMs.set(lane, known === undefined ? ms : known + (ms - known) * NEWEST.run);
  }

  /** No slot of this lane became free in time: its tasks run longer now. Nothing is claimed ahead until one of them has ended. */
  stalled(lane: string): void {
    this.#runMs.delete(lane);
  }

  /** An exchange with the storage took this long. */
  exchanged(ms: number): void {
    this.#exchangeMs += (ms - this.#exchangeMs) * (this.#exchangeMs === 0 ? 1 : NEWEST.exchange);
  }

  /**
   * How many tasks a lane with this many slots should hold ahead, those included that a claim asks for now. Until it is answered,
   * some will have begun; the others have to last until the next claim is.
   */
  target(lane: string, slots: number): number {
    if (this.needed(lane, slots) < 1) return 0;
    const tasks = this.#perMs(lane, slots) * (2 * this.#exchangeMs + LINGER_MS);
    return Math.floor(Math.min(tasks, slots * PER_SLOT_MAX));
  }

  /** How many tasks of a lane with this many slots end while an exchange lasts. */
  needed(lane: string, slots: number): number {
    return this.#perMs(lane, slots) * this.#exchangeMs;
  }

  #perMs(lane: string, slots: number): number {
    const runMs = this.#runMs.get(lane);
    return runMs === undefined ? 0 : slots / Math.max(runMs, RUN_MS_MIN);
  }
}
