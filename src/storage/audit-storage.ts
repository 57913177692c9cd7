/** Who did what, and when: one part of the contract in storage.ts. Entries outlive the tenant that they are of. */

export interface AuditStorage {
  /** Writes down what was done, in this order. */
  append(params: { entries: readonly NewAuditEntry[] }): Promise<void>;
  /** Of one tenant, the newest first; of one moment, the last that was written down. */
  list(params: ListAuditParams): Promise<{ entries: AuditEntry[]; nextCursor: number | null }>;
  /** Deletes up to `limit` entries from before `now - retentionMs`, whoever's. `more`: call again. */
  prune(params: { retentionMs: number; limit: number }): Promise<{ more: boolean }>;
}

export interface NewAuditEntry {
  readonly at: number;
  /** Whose key it was. */
  readonly tenant: string;
  /** Null: no key was asked for. */
  readonly keyId: string | null;
  /** What was done, as the route says it. */
  readonly route: string;
  /** What it was done to; null: nothing in particular, or erased with its tenant. */
  readonly subject: string | null;
  /**
   * Where the caller chose the name of the subject, a digest of it: when the tenant is deleted, the subject is erased and this
   * stays. Null: the subject is an id that Rota made.
   */
  readonly subjectDigest: string | null;
}

export interface AuditEntry extends NewAuditEntry {
  /** Grows with every entry. */
  readonly seq: number;
}

export interface ListAuditParams {
  readonly tenant: string;
  /** Not before. */
  readonly since?: number;
  readonly keyId?: string;
  readonly limit: number;
  /** From `nextCursor` of the page before. */
  readonly cursor?: number;
}
