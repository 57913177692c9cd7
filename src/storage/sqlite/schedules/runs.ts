import type { RunStatus } from "../../../model/run.ts";
import type { ListRunsParams, RunRecord } from "../../storage.ts";
import type { SqliteDatabase } from "../connection/database.ts";

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

/** The number of attempts of a running run, from its task. */
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

/**
 * Up to this many runs that started or ended since a given time are sorted. If there are more, the newest runs are read in
 * order.
 */
const RECENT_MAX = 1_000;
/** How many runs one call reads if not all of them need match. */
const RUNS_LOOKED_MAX = 500;

/**
 * Newest first. With `since`, few of many runs may match: then the index on time finds them. If many match, one call reads
 * `RUNS_LOOKED_MAX` runs and leaves the rest for the next page.
 */
export function listRuns(
  db: SqliteDatabase,
  params: ListRunsParams,
): { runs: RunRecord[]; nextCursor: number | null } {
  const { tenant, schedule, status, since, limit, cursor: below = Number.MAX_SAFE_INTEGER } = params;
  const values = { tenant, schedule: schedule ?? null, status: status ?? null, since: since ?? null, below };
  const recent = since === undefined ? null : recentRuns(db, values);
  const { index, condition } =
    recent !== null
      ? { index: "not indexed", condition: "r.id in (select value from json_each(@recent))" }
      : leadingIndex(params);
  const reached =
    since === undefined || recent !== null
      ? undefined
      : db
          .prepare<{ id: number }>(
            `select r.id from run r ${index} where ${condition} and r.id < @below
              order by r.id desc limit 1 offset ${RUNS_LOOKED_MAX - 1}`,
          )
          .get(values);
  const rows = db
    .prepare<ReadRun>(
      `select r.*, ${ATTEMPT} from run r ${index}
        where ${condition} and r.tenant = @tenant and r.id < @below and r.id >= @reached
          and (@schedule is null or r.schedule = @schedule) and (@status is null or r.status = @status)
          and (@since is null or coalesce(r.completed_at, r.started_at) >= @since)
        order by r.id desc limit +@page`,
    )
    .all({ ...values, recent: JSON.stringify(recent), reached: reached?.id ?? 0, page: limit + 1 });
  const page = rows.slice(0, limit);
  return {
    runs: page.map(toRunRecord),
    nextCursor: (rows.length > limit ? page.at(-1)?.id : reached?.id) ?? null,
  };
}

/** The index that yields the matching runs newest first. */
function leadingIndex({ schedule, status }: ListRunsParams): { index: string; condition: string } {
  if (schedule !== undefined && status !== undefined) {
    const condition = "r.schedule = @schedule and r.status = @status";
    return { index: "indexed by run_by_schedule_status", condition };
  }
  if (schedule !== undefined)
    return { index: "indexed by run_by_schedule", condition: "r.schedule = @schedule" };
  if (status !== undefined)
    return { index: "indexed by run_by_status", condition: "r.tenant = @tenant and r.status = @status" };
  return { index: "indexed by run_by_tenant", condition: "r.tenant = @tenant" };
}

/** The runs of a tenant that started or ended since; null: more than `RECENT_MAX`. */
function recentRuns(db: SqliteDatabase, values: Readonly<Record<string, unknown>>): number[] | null {
  const found = db
    .prepare<{ id: number }>(
      `select r.id from run r indexed by run_by_time
        where r.tenant = @tenant and coalesce(r.completed_at, r.started_at) >= @since limit ${RECENT_MAX + 1}`,
    )
    .all(values);
  return found.length > RECENT_MAX ? null : found.map(({ id }) => id);
}

/** Deletes a slice of expired runs and notifications, inside a transaction. */
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
  // A notification of the distant future was written while the clock was wrong: it must not keep all later ones.
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
