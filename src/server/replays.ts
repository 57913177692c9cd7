import type { ReadPace } from "../model/read-pace.ts";
import { unitsOf } from "./middleware/request-cost.ts";
import type { ChargedTo, RequestLimits } from "./middleware/request-limits.ts";
import type { ReadTurns } from "./read-turns.ts";

export interface ReplayTurns {
  /** The streams that may read next, which may have to wait for their bucket. */
  readonly streams: ReadTurns;
  /** The reads themselves. Pages of lists take the same turns. */
  readonly pages: ReadTurns;
}

/**
 * Schedules the reads of streams that replay past events. The streams of one key, and of one
 * tenant, take turns, a few pages at a time, and each
 * page is charged like a page of a list. No stream is refused or ended for that: while a bucket is empty, its replays
 * are slower.
 */
export class Replays {
  readonly #limit: Pick<RequestLimits, "whenSpare" | "settle">;
  readonly #turns: ReplayTurns;

  constructor(limit: Pick<RequestLimits, "whenSpare" | "settle">, turns: ReplayTurns) {
    this.#limit = limit;
    this.#turns = turns;
  }

  /** Returns the read pace of a caller's stream; null: there are no keys, and nothing is charged. `gone` ends its wait. */
  paceOf(owner: ChargedTo | null, gone: AbortSignal): ReadPace {
    return async (read) => {
      const leave = await this.#turns.streams.enter(owner, gone);
      try {
        if (owner !== null) await this.#limit.whenSpare(owner, gone);
        gone.throwIfAborted();
        // While a stream waits for its bucket, the turns for pages are left to lists.
        const work = await this.#turns.pages.during(owner, gone, read);
        if (owner !== null) {
          const { looked, entries } = work;
          const bytesOut = entries.reduce((sum, { bytes }) => sum + bytes, 0);
          this.#limit.settle(owner, unitsOf({ looked, rows: entries.length, bytesOut }));
        }
        return work;
      } finally {
        leave();
      }
    };
  }
}
