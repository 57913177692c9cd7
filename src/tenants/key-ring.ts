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
 * How long a lookup is cached for requests: every node refuses a deleted key within a second, even if it missed the signal. Changes of an
 * exclusive storage all happen in this process, which misses none.
 */
const KNOWN_MS = 1_000;
/**
 * The same for the keys of what is open at a node, and for whether there are any keys. Signals say when that changes: nodes ask
 * the storage only because signals can be lost.
 */
const KNOWN_BY_SIGNAL_MS = 5_000;
/** How often the keys of what is open are checked, because they can expire. */
const LOOK_EVERY_MS = 1_000;
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
 * change. The keys of all that is open at a node are read together: after each signal, with the key of a request, and at least once
 * in five seconds.
 */
export class KeyRing {
  readonly #options: KeyRingOptions;
  /** Lookups by hash. Every signal about keys or tenants replaces the map. */
  #known = new Map<string, Recent<KeyRecord | null>>();
  /** What the next query looks up. */
  #wanted: Lookup[] = [];
  readonly #lookups = new FreshRead(() => this.#readWanted());
  readonly #any: Recent<boolean>;
  /** When a query began that found a key, by the monotonic clock. */
  #foundAt = Number.NEGATIVE_INFINITY;
  readonly #knownMs: number;
  readonly #knownBySignalMs: number;
  #lastAny: boolean | null = null;
  readonly #watched = new Map<string, Set<AbortController>>();
  #timer: Timer | null = null;
  readonly #checks = new FreshRead(() => this.#endStale());

  constructor(options: KeyRingOptions) {
    this.#options = options;
    const { clock, storage } = options;
    const { exclusive } = storage.capabilities;
    this.#knownMs = exclusive ? Number.POSITIVE_INFINITY : KNOWN_MS;
    this.#knownBySignalMs = exclusive ? Number.POSITIVE_INFINITY : KNOWN_BY_SIGNAL_MS;
    this.#any = new Recent({ clock, maxAgeMs: this.#knownBySignalMs, read: () => storage.keys.any() });
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
    if (this.#options.clock.monotonic() - this.#foundAt < this.#knownBySignalMs) return true;
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
    this.#foundAt = Number.NEGATIVE_INFINITY;
    this.#lastAny = null;
    void this.#checkWatched();
  }

  close(): void {
    this.#timer?.cancel();
    this.#watched.clear();
  }

  /** Null: the key is unknown, deleted or expired. */
  async #find(hash: string, maxAgeMs = this.#knownMs): Promise<KeyRecord | null> {
    const record = await this.#knownAs(hash).get(maxAgeMs);
    if (record === null || !isSame(record.hash, hash)) return null;
    const { expiresAt } = record;
    return expiresAt !== null && expiresAt <= this.#options.storageClock.now() ? null : record;
  }

  #knownAs(hash: string): Recent<KeyRecord | null> {
    const known = this.#known.get(hash);
    if (known !== undefined) return known;
    const { clock } = this.#options;
    const recent = new Recent({ clock, maxAgeMs: this.#knownMs, read: () => this.#lookUp(hash) });
    if (this.#known.size >= KNOWN_MAX) this.#known.clear();
    this.#known.set(hash, recent);
    return recent;
  }

  /** Lookups that begin together, or while another query is under way, share a query. */
  async #lookUp(hash: string): Promise<KeyRecord | null> {
    const lookup: Lookup = { hash, record: null };
    this.#wanted.push(lookup);
    await this.#lookups.now();
    return lookup.record;
  }

  async #readWanted(): Promise<void> {
    const { clock, storage } = this.#options;
    const lookups = this.#wanted;
    this.#wanted = [];
    const begunAt = clock.monotonic();
    const known = this.#known;
    const asked = new Set(lookups.map(({ hash }) => hash));
    // Requests will ask for them, too.
    const watched = [...this.#watched.keys()].filter(
      (hash) => !asked.has(hash) && this.#knownAs(hash).isOlder(),
    );
    const records = await storage.keys.findByHashes({ hashes: [...asked, ...watched] });
    const byHash = new Map(records.map((record) => [record.hash, record]));
    for (const lookup of lookups) lookup.record = byHash.get(lookup.hash) ?? null;
    // Keys may have changed while they were read.
    if (known !== this.#known) return;
    if (records.length > 0) this.#foundAt = begunAt;
    for (const hash of watched) this.#knownAs(hash).put(byHash.get(hash) ?? null, begunAt);
  }

  #look(): Timer {
    return this.#options.clock.setTimer(LOOK_EVERY_MS, async () => {
      await this.#checkWatched();
      this.#timer = this.#watched.size === 0 ? null : this.#look();
    });
  }

  /** Checks the keys of open streams and waits. Calls while one is under way share the next one. */
  #checkWatched(): Promise<void> {
    return this.#checks.now();
  }

  async #endStale(): Promise<void> {
    const ends = [...this.#watched].map(async ([hash, watchers]) => {
      // While the storage is unavailable the key cannot be checked: readers get nothing meanwhile either.
      const isGone = await this.#find(hash, this.#knownBySignalMs).then(
        (record) => record === null,
        () => false,
      );
      if (!isGone) return;
      this.#watched.delete(hash);
      for (const watcher of watchers) watcher.abort();
    });
    await Promise.all(ends);
  }
}

interface Lookup {
  readonly hash: string;
  /** Null: none was found, or not yet. */
  record: KeyRecord | null;
}

/** Compares in constant time. The storage has already searched for the hash itself. */
function isSame(one: string, other: string): boolean {
  return one.length === other.length && timingSafeEqual(Buffer.from(one), Buffer.from(other));
}
