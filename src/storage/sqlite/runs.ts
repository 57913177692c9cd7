import type { RunStatus } from "../../model/schedule.ts";
import type { ListRunsParams, RunRecord } from "../storage.ts";
import type { SqliteDatabase } from "./database.ts";

/** A row of `run`. */
export interface RunRow {
  readonly id: number;
  readonly tenant: string;
  readonly schedule: number;
  readonly agent: string;
  readonly task_id: string | null;
  readonly due_at: number;
  readonly first_due_at: number;
  readonly moments: number;
  readonly forced: 0 | 1;
  readonly status: RunStatus;
  readonly reason: string | null;
  readonly started_at: number | null;
  readonly completed_at: number | null;
  readonly request_id: string | null;
  readonly result_summary: string | null;
  readonly error: string | null;
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly attempt: number;
}

/** While it goes, its task knows how often it was tried. */
const ATTEMPT = `
  case when r.status = 'running'
       then (select coalesce(l.attempt, t.executions) from task t left join lease l on l.task_seq = t.seq
              where t.id = r.task_id)
       end as tried`;

type ReadRun = RunRow & { readonly tried: number | null };

export function getRun(db: SqliteDatabase, { tenant, id }: { tenant: string; id: number }): RunRecord | null {
  const row = db
    .prepare<ReadRun>(`select r.*, ${ATTEMPT} from run r where r.tenant = ? and r.id = ?`)
    .get(tenant, id);
  return row === undefined ? null : toRunRecord(row);
}

/** Newest first. Of a time span there may be few among many: those are found by their time. */
export function listRuns(
  db: SqliteDatabase,
  params: ListRunsParams,
): { runs: RunRecord[]; nextCursor: number | null } {
  const conditions = ["r.tenant = @tenant"];
  if (params.schedule !== undefined) conditions.push("r.schedule = @schedule");
  if (params.status !== undefined) conditions.push("r.status = @status");
  if (params.since !== undefined) conditions.push("coalesce(r.completed_at, r.started_at) >= @since");
  if (params.cursor !== undefined) conditions.push("r.id < @cursor");
  const index =
    params.schedule !== undefined
      ? "run_by_schedule"
      : params.since !== undefined
        ? "run_by_time"
        : params.status !== undefined
          ? "run_by_status"
          : "run_by_tenant";
  const rows = db
    .prepare<ReadRun>(
      `select r.*, ${ATTEMPT} from run r indexed by ${index}
        where ${conditions.join(" and ")} order by r.id desc limit +@page`,
    )
    .all({ ...params, page: params.limit + 1 });
  const page = rows.slice(0, params.limit);
  return {
    runs: page.map(toRunRecord),
    nextCursor: rows.length > params.limit ? (page.at(-1)?.id ?? null) : null,
  };
}

/** Deletes a slice of what is past its time, inside a transaction. */
export function pruneRuns(
  db: SqliteDatabase,
  { retentionMs, limit }: { retentionMs: number; limit: number },
  now: number,
): { more: boolean } {
  const cutoff = now - retentionMs;
  const runs = db
    .prepare(
      `delete from run where id in
         (select id from run where completed_at < ? order by completed_at, id limit +?)`,
    )
    .run(cutoff, limit);
  const told = db
    .prepare<{ seq: number; at: number }>("select seq, at from notification order by seq limit +?")
    .all(limit);
  // What claims to be of a distant future was written while the clock was wrong: it must not keep everything behind it.
  const firstKept = told.findIndex(({ at }) => at >= cutoff && at <= now + retentionMs);
  const past = firstKept === -1 ? told : told.slice(0, firstKept);
  db.prepare("delete from notification where seq <= ?").run(past.at(-1)?.seq ?? 0);
  return { more: runs.changes === limit || past.length === limit };
}

function toRunRecord(row: ReadRun): RunRecord {
  return {
    id: row.id,
    tenant: row.tenant,
    scheduleId: row.schedule,
    agent: row.agent,
    taskId: row.task_id,
    dueAt: row.due_at,
    firstDueAt: row.first_due_at,
    moments: row.moments,
    forced: row.forced === 1,
    status: row.status,
    reason: row.reason,
    startedAt: row.started_at,
    completedAt: row.completed_at,
    requestId: row.request_id,
    resultSummary: row.result_summary,
    error: row.error,
    inputTokens: row.input_tokens,
    outputTokens: row.output_tokens,
    attempt: row.tried ?? row.attempt,
  };
}
