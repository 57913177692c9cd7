import type { Clock } from "../model/clock.ts";
import type { Storage } from "../storage/storage.ts";

/** How long a measured difference is trusted: clocks drift apart by less than a millisecond in this time. */
const SYNC_EVERY_MS = 5_000;

/**
 * The storage's time as this process sees it: due moments, deadlines and retries are in it. A storage that belongs to
 * this process alone shares its clock. Otherwise the database has its own: it is asked now and then, and counted on
 * from the answer by the monotonic clock, so that a jump of this machine's wall clock changes nothing.
 */
export class StorageClock {
  readonly #clock: Clock;
  readonly #storage: Storage;
  #base: { storage: number; monotonic: number } | null = null;

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
    if (this.#base !== null && asked - this.#base.monotonic < SYNC_EVERY_MS) return;
    const storage = await this.#storage.now();
    const answered = this.#clock.monotonic();
    this.#base = { storage, monotonic: (asked + answered) / 2 };
  }
}
