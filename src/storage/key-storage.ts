/** How a storage knows who is asking: one part of the contract in storage.ts. */

/** Keys by which requests are let in. The key itself is nowhere: only its hash is. */
export interface KeyStorage {
  /** Null: there is no such tenant, or it is being deleted, and nothing changed. */
  create(params: NewKey): Promise<KeyRecord | null>;
  /** Asked at every request. Whether the key has expired is for the caller to see. */
  findByHash(params: { hash: string }): Promise<KeyRecord | null>;
  /** Of one tenant, the oldest first. */
  list(params: { tenant: string }): Promise<KeyRecord[]>;
  /** Whether there is any key at all, whoever's. */
  any(): Promise<boolean>;
  /** False: the tenant has no such key. */
  delete(params: { tenant: string; id: string }): Promise<boolean>;
  /** Writes down when keys were used last. A moment before the one that is known changes nothing, nor does a key that is gone. */
  touch(params: { uses: readonly { readonly id: string; readonly at: number }[] }): Promise<void>;
}

export interface NewKey {
  readonly id: string;
  readonly tenant: string;
  readonly name: string;
  /** What it allows: the storage does not look into it. */
  readonly role: string;
  /** The only agent it is for; null: any. */
  readonly agent: string | null;
  /** Nobody else's. */
  readonly hash: string;
  /** Null: never. */
  readonly expiresAt: number | null;
}

export interface KeyRecord extends NewKey {
  readonly createdAt: number;
  /** Null: never. */
  readonly lastUsedAt: number | null;
}
