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
  /** Whether a caller chose the name of the subject, which then goes with its tenant; left out: it is an id. */
  readonly isChosen?: boolean;
  /** Where the request came from. */
  readonly address?: string;
  /** The status with which it was refused; left out: it was done. */
  readonly status?: number;
  /** How many requests it stands for; left out: 1. */
  readonly count?: number;
}

export interface AuditFilter {
  /** RFC 3339, or seconds since 1970: not before. */
  readonly since?: string | number;
  readonly keyId?: string;
  /** The log of this tenant, also of a deleted one; left out: of the caller's own. */
  readonly tenantId?: string;
  /** 100 unless told, at most 1000. */
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
  /** What it was done to; null: nothing in particular, or erased with its tenant. */
  readonly subject: string | null;
  /** Where the request came from; left out: not by HTTP. */
  readonly address?: string;
  /** The status with which it was refused, 401, 403 or 429; left out: it was done. */
  readonly status?: number;
  /** With `status`: how many requests were refused so. Beyond the first few of a minute one entry stands for the rest. */
  readonly count?: number;
}

export interface AuditPage {
  readonly entries: readonly AuditRecord[];
  readonly count: number;
  /** Null on the last page. */
  readonly nextCursor: string | null;
}
