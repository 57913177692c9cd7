import { timingSafeEqual } from "node:crypto";
import type { Clock, Timer } from "../model/clock.ts";
import { type Caller, roleIn } from "../model/role.ts";
import { FreshRead } from "../services/fresh-read.ts";
import { isStorageAway } from "../services/storage-away.ts";
import type { StorageClock } from "../services/storage-clock.ts";
import type { KeyRecord, Storage } from "../storage/storage.ts";
import { hashOf, isApiKey } from "./api-key.ts";
import type { KeyUses } from "./key-uses.ts";
import { Recent } from "./recent.ts";

/**
 * How long a lookup is cached: every node refuses a deleted key within a second, even if it missed the signal. Changes of an
 * exclusive storage all happen in this process, which misses none.
 */
const KNOWN_MS = 1_000;
/** How many lookups are cached: any caller can send texts that look like keys. */
const KNOWN_MAX = 10_000;

export interface KeyRingOptions {
  readonly storage: Storage;
  readonly storageClock: StorageClock;
  readonly clock: Clock;
  readonly uses: KeyUses;
}

/**
 * Finds the caller of a key. It reads each key from the storage at most once a second, and from an exclusive storage only after a
 * change.
 */
export class KeyRing {
  readonly #options: KeyRingOptions;
  /** Lookups by hash. Every signal about keys or tenants replaces the map. */
  #known = new Map<string, Recent<KeyRecord | null>>();
  readonly #any: Recent<boolean>;
  readonly #knownMs: number;
  #lastAny: boolean | null = null;
  readonly #watched = new Map<string, Set<AbortController>>();
  #timer: Timer | null = null;
  readonly #checks = new FreshRead(() => this.#endStale());

  constructor(options: KeyRingOptions) {
    this.#options = options;
    const { clock, storage } = options;
    this.#knownMs = storage.capabilities.exclusive ? Number.POSITIVE_INFINITY : KNOWN_MS;
    this.#any = new Recent({ clock, maxAgeMs: this.#knownMs, read: () => storage.keys.any() });
  }

  async callerOf(key: string): Promise<Caller | null> {
    if (!isApiKey(key)) return null;
    const record = await this.#find(hashOf(key));
    if (record === null) return null;
    this.#options.uses.record(record.id);
    return {
      tenant: record.tenant,
      role: roleIn(record.tenant, record.role),
      agent: record.agent,
      ...(record.role === "worker" ? { workerAgents: record.agents ?? [] } : {}),
      ...(record.bounds === null ? {} : { bounds: record.bounds }),
      keyId: record.id,
      keyName: record.name,
    };
  }

  /**
   * While the storage is unavailable, returns the last result unless a signal came since. That is safe: a caller without a key
   * could then read and change nothing, and a caller with a key cannot be authenticated without the storage.
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

  /** Keys, or the tenants that have them, were changed. */
  keysChanged(): void {
    this.#known = new Map();
    this.#any.drop();
    this.#lastAny = null;
    void this.#checkWatched();
  }

  close(): void {
    this.#timer?.cancel();
    this.#watched.clear();
  }

  /** Null: the key is unknown, deleted or expired. */
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
      maxAgeMs: this.#knownMs,
      read: () => storage.keys.findByHash({ hash }),
    });
    if (this.#known.size >= KNOWN_MAX) this.#known.clear();
    this.#known.set(hash, recent);
    return recent;
  }

  #look(): Timer {
    return this.#options.clock.setTimer(KNOWN_MS, async () => {
      if (!this.#options.storage.capabilities.exclusive)
        for (const hash of this.#watched.keys()) this.#known.get(hash)?.drop();
      await this.#checkWatched();
      this.#timer = this.#watched.size === 0 ? null : this.#look();
    });
  }

  /** Checks the keys of open streams and waits. Calls while one is under way share the next one. */
  #checkWatched(): Promise<void> {
    return this.#checks.now();
  }

  async #endStale(): Promise<void> {
    for (const [hash, watchers] of [...this.#watched]) {
      try {
        if ((await this.#find(hash)) !== null) continue;
      } catch {
        // The storage is unavailable, so that the key cannot be checked: readers get nothing meanwhile either.
        continue;
      }
      this.#watched.delete(hash);
      for (const watcher of watchers) watcher.abort();
    }
  }
}

/** Compares in constant time. The storage has already searched for the hash itself. */
function isSame(one: string, other: string): boolean {
  return one.length === other.length && timingSafeEqual(Buffer.from(one), Buffer.from(other));
}
