import { RUN_STATUSES, type RunStatus } from "../../../model/run.ts";
import type { ListRunsParams, RunRecord } from "../../storage.ts";
import type { PostgresDatabase } from "../connection/database.ts";

interface RunRow {
  readonly id: string;
  readonly tenant: string;
  readonly schedule: string;
  readonly agent: string;
  readonly task_id: string | null;
  readonly due_at: string;
  readonly first_due_at: string;
  readonly moments: number;
  readonly forced: boolean;
  readonly status: RunStatus;
  readonly reason: string | null;
  readonly started_at: string | null;
  readonly completed_at: string | null;
  readonly request_id: string | null;
  readonly result_summary: string | null;
  readonly error: string | null;
  readonly input_tokens: string;
  readonly output_tokens: string;
  readonly attempt: number;
  /** The attempts of the task; null unless the run is open. */
  readonly tried: number | null;
}

const RUN_COLUMNS = `r.id, r.tenant, r.schedule, r.agent, r.task_id, r.due_at, r.first_due_at, r.moments, r.forced, r.status,
  r.reason, r.started_at, r.completed_at, r.request_id, r.result_summary, r.error, r.input_tokens, r.output_tokens, r.attempt,
  h.tried`;

/** While a run is open, its task has the number of attempts. */
const RUN_TABLES = `run r left join lateral (
  select coalesce(l.attempt, t.executions) as tried
    from task t left join lease l on l.task_seq = t.seq where r.status = 'running' and t.id = r.task_id) h on true`;

export async function getRun(
  db: PostgresDatabase,
  { tenant, id }: { tenant: string; id: number },
): Promise<RunRecord | null> {
  const [row] = await db.readDurably<RunRow>({
    name: "get_run",
    text: `select ${RUN_COLUMNS} from ${RUN_TABLES} where r.id = $2 and (r.tenant = $1) is true`,
    values: [tenant, id],
  });
  return row === undefined ? null : toRunRecord(row);
}

/** Newest first. */
export async function listRuns(
  db: PostgresDatabase,
  params: ListRunsParams,
): Promise<{ runs: RunRecord[]; nextCursor: number | null }> {
  const { text, values } = listOfRuns(params);
  const answers = await db.readDurably<RunRow & { readonly reached: string | null }>({ text, values });
  const reached = answers[0]?.reached ?? null;
  // If no run matches, one row without a run has `reached`.
  const rows = answers.filter(({ id }) => id !== null);
  const runs = rows.slice(0, params.limit).map(toRunRecord);
  if (rows.length > params.limit) return { runs, nextCursor: runs.at(-1)?.id ?? null };
  return { runs, nextCursor: reached === null ? null : Number(reached) };
}

/** If at most this many runs were reported since `since`, these are sorted; else the newest runs are read in order. */
const RECENT_MAX = 1_000;
/** How many of the newest runs one call then reads. */
const RUNS_LOOKED_MAX = 500;

export function listOfRuns(params: ListRunsParams): { text: string; values: unknown[] } {
  const { tenant, agent, schedule, status, since, cursor, limit } = params;
  const values: unknown[] = [tenant, limit + 1];
  const parameter = (value: unknown) => `$${values.push(value)}`;
  const others = cursor === undefined ? [] : [`r.id + 0 < ${parameter(cursor)}`];
  const ofTenant = "(r.tenant = $1) is true";
  const ofSchedule = schedule === undefined ? undefined : parameter(schedule);
  const ofAgent = agent === undefined ? undefined : parameter(agent);
  // A literal rather than a parameter: some statuses are rare, others are of nearly all runs, and no plan suits both.
  const inStatus = status === undefined ? undefined : `'${status}'`;
  const page = (...conditions: string[]) => `
    (select ${RUN_COLUMNS} from ${RUN_TABLES} where ${[...conditions, ...others].join(" and ")}
      order by r.id + 0 desc limit $2)`;
  // Read in each status, so that the indexes serve lists with and without a status.
  const newestOfAgent = (max: string) => {
    const from =
      ofSchedule === undefined
        ? "r.tenant || '' || '' = $1"
        : `0 + r.schedule = ${ofSchedule} and ${ofTenant}`;
    const newest = (each: RunStatus) => `
      (select r.id from run r
        where ${[from, `r.agent = ${ofAgent}`, `r.status || '' = '${each}'`, ...others].join(" and ")}
        order by r.id + 0 desc limit ${max})`;
    const all = (status === undefined ? RUN_STATUSES : [status]).map(newest).join(" union all ");
    return [`r.id = any (array(select o.id from (${all}) o order by o.id desc limit ${max}))`];
  };
  const newest = (max: string) => (ofAgent === undefined ? inOrder : newestOfAgent(max));
  const inOrder =
    ofSchedule !== undefined
      ? inStatus !== undefined
        ? [`r.schedule + 0 = ${ofSchedule} and r.status = ${inStatus}`, ofTenant]
        : [`r.schedule = ${ofSchedule}`, ofTenant]
      : inStatus !== undefined
        ? [`r.tenant = $1 and r.status = ${inStatus}`]
        : ["r.tenant || '' = $1"];
  if (since === undefined)
    return { text: `select *, null as reached from ${page(...newest("$2"))} found`, values };
  const from = parameter(since);
  const filters = [
    ...(ofSchedule === undefined ? [] : [`(r.schedule = ${ofSchedule}) is true`]),
    ...(inStatus === undefined ? [] : [`(r.status = ${inStatus}) is true`]),
    ...(ofAgent === undefined ? [] : [`(r.agent = ${ofAgent}) is true`]),
  ];
  // Not as a number: the planner, which may think there are no more than that, would read all and put them in order.
  const looked = `(select ${RUNS_LOOKED_MAX})`;
  const few = `(select cardinality(ids) from recent) <= ${RECENT_MAX}`;
  const text = `
    with recent as materialized (select recent_runs($1, ${from}, ${RECENT_MAX + 1}) as ids),
    walked as materialized (
      select r.id, r.told_at from run r where ${[`not ${few}`, ...newest(looked), ...others].join(" and ")}
       order by r.id + 0 desc limit ${looked}),
    reached as materialized (select min(w.id) as reached from walked w having count(*) = ${RUNS_LOOKED_MAX})
    select found.*, (select reached from reached) as reached from (select) s left join (
      ${page(few, "r.id = any ((select ids from recent)::bigint[])", ...filters)}
      union all
      ${page(`not ${few}`, `r.id = any (array(select w.id from walked w where w.told_at >= ${from} order by w.id desc limit $2))`)}) found
      on true
     order by id desc limit $2`;
  return { text, values };
}

function toRunRecord(row: RunRow): RunRecord {
  return {
    id: Number(row.id),
    tenant: row.tenant,
    scheduleId: Number(row.schedule),
    agent: row.agent,
    taskId: row.task_id,
    dueAt: Number(row.due_at),
    firstDueAt: Number(row.first_due_at),
    moments: row.moments,
    forced: row.forced,
    status: row.status,
    reason: row.reason,
    startedAt: row.started_at === null ? null : Number(row.started_at),
    completedAt: row.completed_at === null ? null : Number(row.completed_at),
    requestId: row.request_id,
    resultSummary: row.result_summary,
    error: row.error,
    inputTokens: Number(row.input_tokens),
    outputTokens: Number(row.output_tokens),
    attempt: row.tried ?? row.attempt,
  };
}

/** Deletes a slice of expired runs and notifications. */
export async function pruneRuns(
  db: PostgresDatabase,
  { retentionMs, limit }: { retentionMs: number; limit: number },
): Promise<{ more: boolean }> {
  const [row] = await db.write<{ more: boolean }>({
    name: "prune_runs",
    text: "select prune_runs($1, $2, $3) as more",
    values: [retentionMs, limit],
  });
  return { more: row?.more ?? false };
}

export const READ_RUN_FUNCTIONS = `
-- The runs of a tenant that changed since then, p_max at most. A cursor is planned for its first rows; any other query may
-- be planned to read and sort all of them.
create function recent_runs(p_tenant text, p_since bigint, p_max integer) returns bigint[] language plpgsql stable as $$
declare
  v_newest cursor for
    select r.id from run r where '' || r.tenant = p_tenant and r.told_at >= p_since order by r.told_at desc;
  v_ids bigint[] := '{}';
begin
  for v_run in v_newest loop
    v_ids := v_ids || v_run.id;
    exit when cardinality(v_ids) = p_max;
  end loop;
  return v_ids;
end $$;
`;

export const PRUNE_RUN_FUNCTIONS = `
create function prune_runs(p_now bigint, p_retention_ms bigint, p_limit integer) returns boolean language plpgsql as $$
declare
  v_now bigint := take_write_lock(p_now);
  v_cutoff bigint := v_now - p_retention_ms;
  v_runs bigint[];
  v_last bigint;
  v_deleted bigint;
begin
  -- If a power failure undoes this, it is done again.
  set local synchronous_commit = off;
  v_runs := array(
    select r.id from run r where r.completed_at < v_cutoff order by r.completed_at, r.id limit p_limit);
  delete from run r where r.id = any (v_runs);
  -- Rows from a distant future were written while the clock was wrong and must not protect everything behind them.
  with oldest as (select n.seq, n.at from notification n order by n.seq limit p_limit)
  select max(o.seq), count(*) into v_last, v_deleted from oldest o
   where o.seq < coalesce((select min(k.seq) from oldest k where k.at between v_cutoff and v_now + p_retention_ms), 9e18);
  if v_deleted > 0 then perform delete_notifications(array(select n.seq from notification n where n.seq <= v_last)); end if;
  return cardinality(v_runs) = p_limit or v_deleted = p_limit;
end $$;
`;
