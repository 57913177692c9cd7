import { RUN_STATUSES, type RunStatus } from "../../../model/run.ts";
import type { ListRunsParams, RunRecord } from "../../storage.ts";
import type { SqliteDatabase } from "../connection/database.ts";
import { type ReadRun, toRunRecord } from "./run-row.ts";

/** The number of attempts of a running run, from its task. */
const ATTEMPT = `
  case when r.status = 'running'
       then (select coalesce(l.attempt, t.executions) from task t left join lease l on l.task_seq = t.seq
              where t.id = r.task_id)
       end as tried`;

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
  const { tenant, agent = null, schedule = null, status = null, since, limit } = params;
  const below = params.cursor ?? Number.MAX_SAFE_INTEGER;
  const ids = since === undefined ? limit + 1 : RUNS_LOOKED_MAX;
  const values = { tenant, agent, schedule, status, since: since ?? null, below, ids };
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
          and (@agent is null or r.agent = @agent)
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
function leadingIndex(params: ListRunsParams): { index: string; condition: string } {
  const { agent, schedule, status } = params;
  if (agent !== undefined) return { index: "not indexed", condition: `r.id in (${newestOfAgent(params)})` };
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

/** Up to `@ids` of an agent's runs in each status. So the indexes serve lists with and without a status. */
function newestOfAgent({ schedule, status }: ListRunsParams): string {
  const from =
    schedule === undefined
      ? "run indexed by run_by_agent where tenant = @tenant"
      : "run indexed by run_by_schedule_agent where schedule = @schedule";
  const newest = (each: RunStatus) =>
    `select * from (select id from ${from} and agent = @agent and status = '${each}' and id < @below
                     order by id desc limit +@ids)`;
  return (status === undefined ? RUN_STATUSES : [status]).map(newest).join(" union all ");
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

/** Deletes a slice of expired runs and notifications. */
export function pruneRuns(
  db: SqliteDatabase,
  { retentionMs, limit }: { retentionMs: number; limit: number },
): Promise<{ more: boolean }> {
  return db.transactDurably((tx) => {
    const cutoff = tx.now - retentionMs;
    const runs = tx
      .prepare(
        `delete from run where id in
           (select id from run where completed_at < ? order by completed_at, id limit +?)`,
      )
      .run(cutoff, limit);
    const oldest = tx
      .prepare<{ seq: number; at: number }>("select seq, at from notification order by seq limit +?")
      .all(limit);
    // A notification of the distant future was written while the clock was wrong: it must not keep all later ones.
    const firstKept = oldest.findIndex(({ at }) => at >= cutoff && at <= tx.now + retentionMs);
    const past = firstKept === -1 ? oldest : oldest.slice(0, firstKept);
    tx.prepare("delete from notification where seq <= ?").run(past.at(-1)?.seq ?? 0);
    return { more: runs.changes === limit || past.length === limit };
  });
}
