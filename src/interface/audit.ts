/** Who did what, and when. For admins. */
export interface Audit {
  /** Newest first, a page at a time. */
  list(filter?: AuditFilter): Promise<AuditPage>;
}

/** For whoever does something in this process for others. */
export interface LocalAudit extends Audit {
  /** What was done is written down soon, together with what else was, and in any case before `stop()` has ended. */
  note(entry: AuditNote): void;
  /** The same, durable once this answers. */
  write(entry: AuditNote): Promise<void>;
}

export interface AuditNote {
  /** Whose key it was; left out: of `default`. */
  readonly tenantId?: string;
  /** Left out: no key was asked for. */
  readonly keyId?: string | null;
  readonly route: string;
  readonly subject?: string | null;
  /** Whether a caller chose the name in `subject`: it is then erased with its tenant. Left out: the subject is an id. */
  readonly isChosen?: boolean;
  /** The address of the caller. */
  readonly address?: string;
  /** The status of a refused request; left out: the request was carried out. */
  readonly status?: number;
  /** How many requests the entry stands for; left out: 1. */
  readonly count?: number;
}

export interface AuditFilter {
  /** RFC 3339, or seconds since 1970: not before. */
  readonly since?: string | number;
  readonly keyId?: string;
  /** The tenant whose log to read, even a deleted one; left out: the caller's own. */
  readonly tenantId?: string;
  /** The most events: 1 to 1000, 100 by default. */
  readonly limit?: number;
  /** `nextCursor` of the page before. */
  readonly cursor?: string;
}

export interface AuditRecord {
  readonly at: string;
  /** Null: no key was asked for. */
  readonly keyId: string | null;
  /** What was done: `POST /v1/schedules`. */
  readonly route: string;
  /** The id or name of the changed object; null: none, or erased with its tenant. */
  readonly subject: string | null;
  /** The address of the caller; left out: the change did not come over HTTP. */
  readonly address?: string;
  /** 401, 403 or 429 if the request was refused; left out: it was carried out. */
  readonly status?: number;
  /** With `status`: how many refused requests this entry stands for. After the first few of a minute, one entry stands for the others. */
  readonly count?: number;
}

export interface AuditPage {
  readonly entries: readonly AuditRecord[];
  readonly count: number;
  /** Null on the last page. */
  readonly nextCursor: string | null;
}
