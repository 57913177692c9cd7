/** The audit log: one part of the contract in storage.ts. Entries outlive their tenant. */

export interface AuditStorage {
  /**
   * Appends entries, in this order. Throws if an entry of this number is in its chain already: then nothing was written. Each
   * node has its own chain, so that nodes never wait for each other. Entries of a
   * tenant that is being deleted are stored without the names that callers chose: nothing would erase those later.
   */
  append(params: { entries: readonly NewAuditEntry[] }): Promise<void>;
  /** Of one tenant, the newest first; of one moment, the last that was written down. */
  list(params: ListAuditParams): Promise<{ entries: AuditEntry[]; nextCursor: number | null }>;
  /**
   * Deletes up to `limit` entries from before `now - retentionMs`, or from after `now + retentionMs`, written while the clock
   * was wrong. Of a chain only its oldest go, and the last of them is remembered. `more`: call again.
   */
  prune(params: { retentionMs: number; limit: number }): Promise<{ more: boolean }>;
  /** The last entry that a chain had; null: it had none. */
  endOf(params: { chain: string }): Promise<AuditChainPoint | null>;
  /** The name of a chain that has entries: the first after this one; null: there is no further one. */
  nextChain(params: { after: string }): Promise<string | null>;
  /** The last entry of a chain that was deleted for its age; null: none was. */
  prunedOf(params: { chain: string }): Promise<AuditChainPoint | null>;
  /** Entries of a chain beyond a number, in their order. */
  readChain(params: { chain: string; after: number; limit: number }): Promise<AuditEntry[]>;
}

export interface AuditFacts {
  readonly at: number;
  /** Whose key it was. */
  readonly tenant: string;
  /** Null: no key was asked for, or none was known. */
  readonly keyId: string | null;
  /** What was done, as the route says it. */
  readonly route: string;
  /** The id or name of the changed object; null: none, or erased with its tenant. */
  readonly subject: string | null;
  /**
   * Where the caller chose the name of the subject, a digest of it: when the tenant is deleted, the subject is erased and this
   * stays. Null: the subject is an id that Rota made.
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
  /** How many requests the entry stands for. */
  readonly count: number;
}

/** The place of an entry in the chain of a node membership. */
export interface AuditLink {
  /** The node membership. */
  readonly chain: string;
  /** Counted from 1. */
  readonly number: number;
  /** The hash of the entry before it; empty for the first. */
  readonly previousHash: string;
  /** Over all of the entry but a subject that may be erased, and over `previousHash`. */
  readonly hash: string;
}

export interface NewAuditEntry extends AuditFacts, AuditLink {}

/** Without a place in a chain, if it is of before there were chains. */
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
