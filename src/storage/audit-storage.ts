/** The audit log: one part of the contract in storage.ts. Entries outlive their tenant. */

export interface AuditStorage {
  /**
   * Appends entries, in this order. Throws and writes nothing if a chain already has an entry of the same number. Each node has
   * its own chain, so that nodes never wait for each other. Entries of a tenant that is being deleted are stored without the
   * names that callers chose, since no later step would erase them.
   */
  append(params: { entries: readonly NewAuditEntry[] }): Promise<void>;
  /** Of one tenant, newest first; entries of the same time in reverse order of insertion. */
  list(params: ListAuditParams): Promise<{ entries: AuditEntry[]; nextCursor: number | null }>;
  /**
   * Deletes up to `limit` entries from before `now - retentionMs`, or from after `now + retentionMs`, which were written while
   * the clock was wrong. Of a chain only the oldest entries are deleted, and the last deleted one stays known (`prunedOf`).
   * `more`: call again. Need not wait for the disk: what is back after a power cut is deleted again.
   */
  prune(params: { retentionMs: number; limit: number }): Promise<{ more: boolean }>;
  /** The last entry that a chain had; null: it had none. */
  endOf(params: { chain: string }): Promise<AuditChainPoint | null>;
  /** The name of the first chain after this one that has entries; null: there is none. */
  nextChain(params: { after: string }): Promise<string | null>;
  /** The last entry of a chain that was deleted for its age; null: none was. */
  prunedOf(params: { chain: string }): Promise<AuditChainPoint | null>;
  /** Entries of a chain with a number above `after`, in order. */
  readChain(params: { chain: string; after: number; limit: number }): Promise<AuditEntry[]>;
}

export interface AuditFacts {
  /** Who made the change, as JSON text that the hash covers; null: nothing but the key is known. */
  readonly provenance: string | null;
  readonly at: number;
  /** The tenant of the API key. */
  readonly tenant: string;
  /** Null: the server required no key, or the key was unknown. */
  readonly keyId: string | null;
  /** The route of the request. */
  readonly route: string;
  /** The id or name of the changed object; null: none, or erased with its tenant. */
  readonly subject: string | null;
  /**
   * A digest of the subject, if the caller chose its name: when the tenant is deleted, the subject is erased and the digest
   * stays. Null: the subject is an id that Rota created.
   */
  readonly subjectDigest: string | null;
  /**
   * Random characters that the digest includes. They are erased with the subject, so that a name cannot be guessed from its
   * digest. Null: there is no digest, it was made without a salt, or the salt was erased.
   */
  readonly subjectSalt: string | null;
  /** The address of the caller; null: the change did not come over HTTP. */
  readonly address: string | null;
  /** The status with which it was refused; null: it was done. */
  readonly status: number | null;
  /** How many requests this entry covers. */
  readonly count: number;
}

/** The position of an entry in the chain of a node membership. */
export interface AuditLink {
  /** The node membership. */
  readonly chain: string;
  /** Counted from 1. */
  readonly number: number;
  /** The hash of the entry before it; empty for the first. */
  readonly previousHash: string;
  /** Covers `previousHash` and the whole entry, except for a subject that may be erased. */
  readonly hash: string;
}

export interface NewAuditEntry extends AuditFacts, AuditLink {}

/** Entries from before there were chains have no position in one. */
export interface AuditEntry extends AuditFacts, AuditEntryLink {
  /** Grows with every entry. */
  readonly seq: number;
}

export type AuditEntryLink = { readonly [Key in keyof AuditLink]: AuditLink[Key] | null };

export type AuditChainPoint = Pick<AuditLink, "number" | "hash">;

export interface ListAuditParams {
  readonly tenant: string;
  /** Not before. */
  readonly since?: number;
  readonly keyId?: string;
  readonly limit: number;
  /** From `nextCursor` of the page before. */
  readonly cursor?: number;
}
