import { timingSafeEqual } from "node:crypto";
import type { Clock, Timer } from "../model/clock.ts";
import { type Caller, roleIn } from "../model/role.ts";
import { isStorageAway } from "../services/storage-away.ts";
import type { StorageClock } from "../services/storage-clock.ts";
import type { KeyRecord, Storage, StorageSignal } from "../storage/storage.ts";
import { hashOf, isApiKey } from "./api-key.ts";
import type { KeyUses } from "./key-uses.ts";
import { Recent } from "./recent.ts";

/** A key that was taken away is refused within a second on every node, also when the signal that says so was lost. */
const KNOWN_MS = 1_000;
/** How many are remembered: anybody can send what looks like a key. */
const KNOWN_MAX = 10_000;

export interface KeyRingOptions {
  readonly storage: Storage;
  readonly storageClock: StorageClock;
  readonly clock: Clock;
  readonly uses: KeyUses;
}

/** Knows whose a key is, by asking the storage no more than once a second for each. */
export class KeyRing {
  readonly #options: KeyRingOptions;
  /** By hash. Whatever is heard makes it another. */
  #known = new Map<string, Recent<KeyRecord | null>>();
  readonly #any: Recent<boolean>;
  #lastAny: boolean | null = null;
  readonly #watched = new Map<string, Set<AbortController>>();
  #timer: Timer | null = null;

  constructor(options: KeyRingOptions) {
    this.#options = options;
    const { clock, storage } = options;
    this.#any = new Recent({ clock, maxAgeMs: KNOWN_MS, read: () => storage.keys.any() });
  }

  async whose(key: string): Promise<Caller | null> {
    if (!isApiKey(key)) return null;
    const record = await this.#find(hashOf(key));
    if (record === null) return null;
    this.#options.uses.note(record.id);
    return {
      tenant: record.tenant,
      role: roleIn(record.tenant, record.role),
      agent: record.agent,
      keyId: record.id,
      keyName: record.name,
    };
  }

  /**
   * While the storage is away it is as it was, unless something was heard since: there is nothing then that whoever is let in
   * could read or change, and who needs a key needs the storage to be known by it.
   */
  async any(): Promise<boolean> {
    const known = this.#known;
    try {
      const any = await this.#any.get();
      if (known === this.#known) this.#lastAny = any;
      return any;
    } catch (error) {
      if (this.#lastAny === null || !isStorageAway(error)) throw error;
      return this.#lastAny;
    }
  }

  watch(key: string): { readonly gone: AbortSignal; stop(): void } {
    const hash = hashOf(key);
    const controller = new AbortController();
    const watchers = this.#watched.get(hash) ?? new Set();
    this.#watched.set(hash, watchers.add(controller));
    this.#timer ??= this.#look();
    return {
      gone: controller.signal,
      stop: () => {
        watchers.delete(controller);
        if (watchers.size === 0 && this.#watched.get(hash) === watchers) this.#watched.delete(hash);
      },
    };
  }

  onSignal({ kind }: StorageSignal): void {
    if (kind !== "keys" && kind !== "tenants" && kind !== "reconnected") return;
    this.#known = new Map();
    this.#any.drop();
    this.#lastAny = null;
    void this.#checkWatched();
  }

  close(): void {
    this.#timer?.cancel();
    this.#watched.clear();
  }

  /** Null also for one that has expired. */
  async #find(hash: string): Promise<KeyRecord | null> {
    const record = await this.#knownAs(hash).get();
    if (record === null || !isSame(record.hash, hash)) return null;
    const { expiresAt } = record;
    return expiresAt !== null && expiresAt <= this.#options.storageClock.now() ? null : record;
  }

  #knownAs(hash: string): Recent<KeyRecord | null> {
    const known = this.#known.get(hash);
    if (known !== undefined) return known;
    const { clock, storage } = this.#options;
    const recent = new Recent({
      clock,
      maxAgeMs: KNOWN_MS,
      read: () => storage.keys.findByHash({ hash }),
    });
    if (this.#known.size >= KNOWN_MAX) this.#known.clear();
    this.#known.set(hash, recent);
    return recent;
  }

  #look(): Timer {
    return this.#options.clock.setTimer(KNOWN_MS, async () => {
      for (const hash of this.#watched.keys()) this.#known.get(hash)?.drop();
      await this.#checkWatched();
      this.#timer = this.#watched.size === 0 ? null : this.#look();
    });
  }

  async #checkWatched(): Promise<void> {
    for (const [hash, watchers] of [...this.#watched]) {
      try {
        if ((await this.#find(hash)) !== null) continue;
      } catch {
        // The storage is away, so that nobody knows: there is nothing to read meanwhile either.
        continue;
      }
      this.#watched.delete(hash);
      for (const watcher of watchers) watcher.abort();
    }
  }
}

/** It was looked for by its hash already; that takes as long for one that is nearly right as for any other. */
function isSame(one: string, other: string): boolean {
  return one.length === other.length && timingSafeEqual(Buffer.from(one), Buffer.from(other));
}
