import type { SessionName, SessionRecord } from "../../storage.ts";
import type { SqliteDatabase } from "../connection/database.ts";
import type { SessionRow } from "../counters/session-ledger.ts";

export interface Running {
  readonly running: number;
}

export const RECORD_COLUMNS = `
  s.*, (select count(*) from task t join lease l on l.task_seq = t.seq
         where t.session = s.id and t.in_session = 1) as running`;

export function findSession(db: SqliteDatabase, name: SessionName): SessionRecord | null {
  const row = findSessionRow(db, name);
  return row === undefined ? null : toSessionRecord(row);
}

export function findSessionRow(
  db: SqliteDatabase,
  { tenant, key }: SessionName,
): (SessionRow & Running) | undefined {
  return db
    .prepare<SessionRow & Running>(`select ${RECORD_COLUMNS} from session s where s.tenant = ? and s.key = ?`)
    .get(tenant, key);
}

export function toSessionRecord(row: SessionRow & Running): SessionRecord {
  return {
    seq: row.id,
    tenant: row.tenant,
    key: row.key,
    agent: row.agent,
    lane: row.lane,
    mode: row.mode,
    cap: row.cap,
    drop: row.drop_policy,
    debounceMs: row.debounce_ms,
    maxConcurrent: row.max_concurrent,
    defaultMax: row.default_max,
    tokens: row.tokens,
    contextWindow: row.context_window,
    generation: row.generation,
    running: row.running,
    queued: row.queued,
  };
}
