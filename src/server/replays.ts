import type { ReadPace } from "../model/read-pace.ts";
import { KeyTurns } from "./key-turns.ts";
import type { RateLimit } from "./middleware/rate-limit.ts";
import { unitsOf } from "./middleware/request-cost.ts";

/** Pages that are read at once for the streams of one key. */
const READS_PER_KEY_MAX = 2;

/**
 * The streams that read what has happened before from the storage. However many of them one key opens, few of their pages are
 * read at once, in turn; and each is charged like a page of a list. No stream is refused or broken off for that: where the
 * key's bucket is empty, its replays go on more slowly.
 */
export class Replays {
  readonly #limit: Pick<RateLimit, "whenSpare" | "settle">;
  readonly #turns = new KeyTurns(READS_PER_KEY_MAX);

  constructor(limit: Pick<RateLimit, "whenSpare" | "settle">) {
    this.#limit = limit;
  }

  /** How the stream of a key reads; `keyId` null: no key was asked for, and nothing is charged. `gone` ends its waiting. */
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
