import type { Clock } from "../model/clock.ts";
import type { Storage } from "../storage/storage.ts";

/** How long a measured difference is used: clocks drift apart by less than a millisecond in this time. */
const SYNC_EVERY_MS = 5_000;
/** A response that took longer is too inaccurate: the storage is asked again sooner. */
const QUICK_MS = 100;
const SYNC_AGAIN_MS = 1_000;

/**
 * The storage's time as this process sees it. Due times, deadlines and retries are in it. An exclusive storage uses the clock
 * of this process. A shared database has its own: it is asked now and then, and the monotonic clock counts on from its
 * response, so that a jump of this machine's wall clock has no effect. The estimate is never ahead of the database: otherwise
 * schedules would fire too early.
 */
export class StorageClock {
  readonly #clock: Clock;
  readonly #storage: Storage;
  #base: { storage: number; monotonic: number } | null = null;
  /** When the storage is asked again, by the monotonic clock. */
  #syncAt = Number.NEGATIVE_INFINITY;

  constructor({ clock, storage }: { clock: Clock; storage: Storage }) {
    this.#clock = clock;
    this.#storage = storage;
  }

  now(): number {
    if (this.#base === null) return this.#clock.now();
    return Math.floor(this.#base.storage + this.#clock.monotonic() - this.#base.monotonic);
  }

  /**
   * How long to sleep until this time, and `maxMs` at most; null: `maxMs`. At least a millisecond: if the clocks differ slightly, a
   * tick may find nothing that is due, and must not repeat in a busy loop.
   */
  sleepMs(until: number | null, maxMs: number): number {
    return until === null ? maxMs : Math.min(Math.max(until - this.now(), 1), maxMs);
  }

  /** Asks the storage for its time, unless the last response is recent enough. */
  async sync(): Promise<void> {
    if (this.#storage.capabilities.exclusive) return;
    const asked = this.#clock.monotonic();
    if (asked < this.#syncAt) return;
    const storage = await this.#storage.now();
    const answered = this.#clock.monotonic();
    this.#learn({ storage, asked, answered });
    const trustedMs = answered - asked <= QUICK_MS ? SYNC_EVERY_MS : SYNC_AGAIN_MS;
    this.#syncAt = answered + trustedMs;
  }

  /**
   * The storage read its clock at an unknown time between request and response: the request may wait for a connection, and a
   * process may be suspended. The estimate stays as long as it is consistent with the response.
   */
  #learn({ storage, asked, answered }: { storage: number; asked: number; answered: number }): void {
    const known = this.#base === null ? null : this.#base.storage + answered - this.#base.monotonic;
    const isPossible = known !== null && known >= storage && known <= storage + answered - asked;
    if (!isPossible) this.#base = { storage, monotonic: answered };
  }
}
