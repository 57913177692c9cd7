import type { ReadPace } from "../model/read-pace.ts";
import type { RateLimit } from "./middleware/rate-limit.ts";
import { unitsOf } from "./middleware/request-cost.ts";

/** Pages read at the same time for the streams of one key. */
const READS_PER_KEY_MAX = 2;

/** The reads of one key that are under way, and those that wait. */
interface KeyReads {
  active: number;
  readonly waiting: Set<() => void>;
}

/**
 * Schedules the reads of streams that replay past events. The streams of one key take turns, a few pages at a time, and each
 * page is charged like a page of a list. No stream is refused or ended for that: while the key's bucket is empty, its replays
 * are slower.
 */
export class Replays {
  readonly #limit: Pick<RateLimit, "whenSpare" | "settle">;
  readonly #keys = new Map<string | null, KeyReads>();

  constructor(limit: Pick<RateLimit, "whenSpare" | "settle">) {
    this.#limit = limit;
  }

  /** Returns the read pace of a key's stream; `keyId` null: there are no keys, and nothing is charged. `gone` ends its wait. */
  paceOf(keyId: string | null, gone: AbortSignal): ReadPace {
    return async (read) => {
      await this.#enter(keyId, gone);
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
        this.#leave(keyId);
      }
    };
  }

  #enter(keyId: string | null, gone: AbortSignal): Promise<void> | undefined {
    const reads = this.#keys.get(keyId) ?? { active: 0, waiting: new Set() };
    this.#keys.set(keyId, reads);
    if (reads.active < READS_PER_KEY_MAX) {
      reads.active += 1;
      return undefined;
    }
    return new Promise((resolve, reject) => {
      const begin = () => {
        gone.removeEventListener("abort", leave);
        resolve();
      };
      const leave = () => {
        reads.waiting.delete(begin);
        reject(gone.reason);
      };
      reads.waiting.add(begin);
      if (gone.aborted) leave();
      else gone.addEventListener("abort", leave, { once: true });
    });
  }

  /** The read that has waited longest is next. */
  #leave(keyId: string | null): void {
    const reads = this.#keys.get(keyId);
    if (reads === undefined) return;
    for (const begin of reads.waiting) {
      reads.waiting.delete(begin);
      begin();
      return;
    }
    reads.active -= 1;
    if (reads.active === 0) this.#keys.delete(keyId);
  }
}
