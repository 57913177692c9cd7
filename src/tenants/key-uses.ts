import { Service, type ServiceOptions } from "../services/service.ts";
import type { StorageClock } from "../services/storage-clock.ts";
import type { Storage } from "../storage/storage.ts";

/** The first use after a pause is written this much later, with those that came meanwhile. */
const GATHER_MS = 1_000;
/** The shortest time between two writes: keys of programs that are always connected are used every few seconds. */
const WRITE_EVERY_MS = 30_000;
const IDLE_MS = 60 * 60 * 1_000;

export interface KeyUsesOptions extends ServiceOptions {
  readonly storage: Storage;
  readonly storageClock: StorageClock;
}

/** Stores when keys were used last, of all keys together: a key may be used a hundred times a second. */
export class KeyUses extends Service<KeyUsesOptions> {
  readonly name = "key uses";
  #uses = new Map<string, number>();
  #writtenAt = Number.NEGATIVE_INFINITY;

  record(id: string): void {
    this.#uses.set(id, this.options.storageClock.now());
    if (this.#uses.size > 1) return;
    this.start();
    this.wake(Math.max(this.#writtenAt + WRITE_EVERY_MS - this.clock.monotonic(), GATHER_MS));
  }

  async tick(): Promise<number> {
    await this.flush();
    return IDLE_MS;
  }

  async flush(): Promise<void> {
    if (this.#uses.size === 0) return;
    const uses = this.#uses;
    this.#uses = new Map();
    this.#writtenAt = this.clock.monotonic();
    try {
      await this.options.storage.keys.touch({ uses: [...uses].map(([id, at]) => ({ id, at })) });
    } catch (error) {
      // Uses recorded meanwhile are newer.
      this.#uses = new Map([...uses, ...this.#uses]);
      throw error;
    }
  }
}
