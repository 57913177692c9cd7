/** Over how long the rate of ends is measured, at least. */
const WINDOW_MS = 100;
/** The weight of the newest measurement in an average. */
const NEWEST = { rate: 0.5, exchange: 0.2 } as const;

/**
 * How long ends wait for others before they are written, while enough tasks are held ahead to keep all slots busy: an exchange
 * costs much the same for one end as for ten.
 */
export const LINGER_MS = 5;

/** How many tasks of a lane a node claims ahead at most, for each of its slots. About half of them begin before the claim is answered. */
const PER_SLOT_MAX = 4;

interface EndRate {
  since: number;
  ends: number;
  /** Ends per millisecond. */
  rate: number;
}

/**
 * How many tasks to claim ahead, by Little's law: the rate of ends times the duration of an exchange. In a lane of long tasks
 * that is less than one, and nothing is claimed ahead.
 */
export class LookAhead {
  readonly #lanes = new Map<string, EndRate>();
  #exchangeMs = 0;

  /** An attempt of this lane has ended. */
  ended(lane: string, now: number): void {
    this.#measured(lane, now).ends += 1;
  }

  /** An exchange with the storage took this long. */
  exchanged(ms: number): void {
    this.#exchangeMs += (ms - this.#exchangeMs) * (this.#exchangeMs === 0 ? 1 : NEWEST.exchange);
  }

  /**
   * How many tasks a lane with this many slots should hold ahead, those included that a claim asks for now. Until it is answered,
   * some will have begun; the others have to last until the next claim is.
   */
  target(lane: string, slots: number, now: number): number {
    const { rate } = this.#measured(lane, now);
    return Math.min(Math.floor(rate * (2 * this.#exchangeMs + LINGER_MS)), slots * PER_SLOT_MAX);
  }

  /** How many of them will begin while an exchange lasts. */
  needed(lane: string, now: number): number {
    return this.#measured(lane, now).rate * this.#exchangeMs;
  }

  #measured(lane: string, now: number): EndRate {
    let measured = this.#lanes.get(lane);
    if (measured === undefined) {
      measured = { since: now, ends: 0, rate: 0 };
      this.#lanes.set(lane, measured);
    }
    const elapsedMs = now - measured.since;
    if (elapsedMs >= WINDOW_MS) {
      measured.rate += (measured.ends / elapsedMs - measured.rate) * NEWEST.rate;
      measured.since = now;
      measured.ends = 0;
    }
    return measured;
  }
}
