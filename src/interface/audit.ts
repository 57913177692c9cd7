import type { AUDIT_FILTER } from "../model/input/audit-filter-input.ts";
import type { InputOf } from "../model/input/schema.ts";
import type { CreatedBy, Provenance } from "../model/provenance.ts";

/** Who did what, and when. For admins. */
export interface Audit {
  /** Newest first, a page at a time. */
  list(filter?: AuditFilter): Promise<AuditPage>;
}

/** For code in this process that acts for callers, such as the server. */
export interface LocalAudit extends Audit {
  /** Queues an entry. It is written soon, in a batch with others, and at the latest before `stop()` resolves. */
  record(entry: NewAuditRecord): void;
  /** The same, but the entry is durable once this resolves. */
  write(entry: NewAuditRecord): Promise<void>;
}

export interface NewAuditRecord {
  /** The tenant of the key; left out: `default`. */
  readonly tenantId?: string;
  /** Left out: no key was required. */
  readonly keyId?: string | null;
  readonly route: string;
  readonly subject?: string | null;
  /** Whether a caller chose the name in `subject`: it is then erased with its tenant. Left out: the subject is an id. */
  readonly isChosen?: boolean;
  /** The address of the caller. */
  readonly address?: string;
  /** Who made the change. Left out: nothing but the key is known. */
  readonly provenance?: Provenance;
  /** The status of a refused request; left out: the request was carried out. */
  readonly status?: number;
  /** How many requests the entry counts; left out: 1. */
  readonly count?: number;
}

export type AuditFilter = InputOf<typeof AUDIT_FILTER.fields>;

export interface AuditRecord {
  readonly at: string;
  /** Null: no key was required. */
  readonly keyId: string | null;
  /** What was done: `POST /v1/schedules`. */
  readonly route: string;
  /** The id or name of the changed object; null: none, or erased with its tenant. */
  readonly subject: string | null;
  /** The address of the caller; left out: the change did not come over HTTP. */
  readonly address?: string;
  /** Who made the change. Left out: an older version of Rota wrote the entry, or only the key is known. */
  readonly createdBy?: CreatedBy;
  /** The task in whose attempt the change was made. */
  readonly parentTaskId?: string;
  /** The first task of the tree of that task. */
  readonly rootTaskId?: string;
  /** How many tasks are above the change. */
  readonly depth?: number;
  /** 401, 403 or 429 if the request was refused; left out: it was carried out. */
  readonly status?: number;
  /** With `status`: how many refused requests this entry counts. After the first few of a minute, one entry counts the others. */
  readonly count?: number;
}

export interface AuditPage {
  readonly entries: readonly AuditRecord[];
  readonly count: number;
  /** Null on the last page. */
  readonly nextCursor: string | null;
}
