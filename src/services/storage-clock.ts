import type { Clock } from "../model/clock.ts";
import type { Storage } from "../storage/storage.ts";

/** How long a measured difference is trusted: clocks drift apart by less than a millisecond in this time. */
const SYNC_EVERY_MS = 5_000;
/** An answer that took longer says little of what the time is now: the storage is asked again sooner. */
const QUICK_MS = 100;
const SYNC_AGAIN_MS = 1_000;

/**
 * The storage's time as this process sees it: due moments, deadlines and retries are in it. A storage that belongs to
 * this process alone shares its clock. Otherwise the database has its own: it is asked now and then, and counted on
 * from the answer by the monotonic clock, so that a jump of this machine's wall clock changes nothing. It is not taken to be ahead:
 * whoever believes that a moment has come which has not would fire it too early.
 */
export class StorageClock {
  readonly #clock: Clock;
  readonly #storage: Storage;
  #base: { storage: number; monotonic: number } | null = null;
  /** When it is asked again, by the monotonic clock. */
  #syncAt = Number.NEGATIVE_INFINITY;

  constructor({ clock, storage }: { clock: Clock; storage: Storage }) {
    this.#clock = clock;
    this.#storage = storage;
  }

  now(): number {
    if (this.#base === null) return this.#clock.now();
    return Math.floor(this.#base.storage + this.#clock.monotonic() - this.#base.monotonic);
  }

  /** Asks the storage for its time, unless the last answer is young enough. */
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
   * The storage looked at its clock at some time between the question and the answer, and nobody knows when: connections are
   * waited for, processes stand still. What is known already stays unless it cannot be so.
   */
  #learn({ storage, asked, answered }: { storage: number; asked: number; answered: number }): void {
    const known = this.#base === null ? null : this.#base.storage + answered - this.#base.monotonic;
    const isPossible = known !== null && known >= storage && known <= storage + answered - asked;
    if (!isPossible) this.#base = { storage, monotonic: answered };
  }
}
