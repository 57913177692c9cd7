import type { ReadPace } from "../model/read-pace.ts";
import { KeyConcurrency } from "./key-concurrency.ts";
import type { RateLimit } from "./middleware/rate-limit.ts";
import { unitsOf } from "./middleware/request-cost.ts";

/** Pages read at the same time for the streams of one key. */
const READS_PER_KEY_MAX = 2;

/**
 * Schedules the reads of streams that replay past events. The streams of one key take turns, a few pages at a time, and each
 * page is charged like a page of a list. No stream is refused or ended for that: while the key's bucket is empty, its replays
 * are slower.
 */
export class Replays {
  readonly #limit: Pick<RateLimit, "whenSpare" | "settle">;
  readonly #turns = new KeyConcurrency(READS_PER_KEY_MAX);

  constructor(limit: Pick<RateLimit, "whenSpare" | "settle">) {
    this.#limit = limit;
  }

  /** Returns the read pace of a key's stream; `keyId` null: there are no keys, and nothing is charged. `gone` ends its wait. */
  paceOf(keyId: string | null, gone: AbortSignal): ReadPace {
    return async (read) => {
      const leave = await this.#turns.enter(keyId, gone);
      try {
        if (keyId !== null) await this.#limit.whenSpare(keyId, gone);
        gone.throwIfAborted();
        const work = await read();
        if (keyId !== null) {
          const { looked, entries } = work;
          const bytesOut = entries.reduce((sum, { bytes }) => sum + bytes, 0);
          this.#limit.settle(keyId, unitsOf({ looked, rows: entries.length, bytesOut }));
        }
        return work;
      } finally {
        leave();
      }
    };
  }
}
