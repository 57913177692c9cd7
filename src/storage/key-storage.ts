/** API keys: one part of the contract in storage.ts. */
import type { Bounds } from "../model/bounds.ts";

/** API keys that authenticate requests. Only the hash of a key is stored, never the key. */
export interface KeyStorage {
  /** Null: there is no such tenant, or it is being deleted, and nothing changed. */
  create(params: NewKey): Promise<KeyRecord | null>;
  /**
   * The keys with these hashes, in any order. The caller checks whether they have expired. Called for every request, so it need not
   * wait for the disk: a caller gets its key once the key is durable.
   */
  findByHashes(params: { hashes: readonly string[] }): Promise<KeyRecord[]>;
  get(params: { tenant: string; id: string }): Promise<KeyRecord | null>;
  /** Of one tenant, the oldest first. */
  list(params: { tenant: string }): Promise<KeyRecord[]>;
  /** Whether there is a key of any tenant. */
  any(): Promise<boolean>;
  /** False: the tenant has no such key. */
  delete(params: { tenant: string; id: string }): Promise<boolean>;
  /**
   * Stores when keys were last used. A time before the stored one changes nothing. Deleted keys are ignored. Need not wait for
   * the disk: after a power cut, a key may show an earlier use until its next one.
   */
  touch(params: { uses: readonly { readonly id: string; readonly at: number }[] }): Promise<void>;
}

export interface NewKey {
  readonly id: string;
  readonly tenant: string;
  readonly name: string;
  /** What it allows. The storage does not interpret it. */
  readonly role: string;
  /** The only agent that it gives access to; null: all. */
  readonly agent: string | null;
  /** The agents whose tasks a worker with this key may run; null or left out: it is not for workers. */
  readonly agents?: readonly string[] | null;
  /** What its callers may make; null or left out: it has no bounds of its own. */
  readonly bounds?: Bounds | null;
  /** Unique. */
  readonly hash: string;
  /** Null: never. */
  readonly expiresAt: number | null;
}

export interface KeyRecord extends NewKey {
  readonly agents: readonly string[] | null;
  readonly bounds: Bounds | null;
  readonly createdAt: number;
  /** Null: never. */
  readonly lastUsedAt: number | null;
}
