import type { RunStatus } from "../../../model/run.ts";
import type { ListRunsParams, RunRecord } from "../../storage.ts";
import type { PostgresDatabase } from "../connection/database.ts";
import { untilDurable } from "../connection/until-durable.ts";

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
  /** The attempts of the task and the start of the current one; null unless the run is open. */
  readonly tried: number | null;
  readonly held_since: string | null;
}

const RUN_COLUMNS = `r.id, r.tenant, r.schedule, r.agent, r.task_id, r.due_at, r.first_due_at, r.moments, r.forced, r.status,
  r.reason, r.started_at, r.completed_at, r.request_id, r.result_summary, r.error, r.input_tokens, r.output_tokens, r.attempt,
  h.tried, h.held_since`;

/** While a run is open, its task has the number of attempts. */
const RUN_TABLES = `run r left join lateral (
  select coalesce(l.attempt, t.executions) as tried, l.started_at as held_since
    from task t left join lease l on l.task_seq = t.seq where r.status = 'running' and t.id = r.task_id) h on true`;

export async function getRun(
  db: PostgresDatabase,
  { tenant, id }: { tenant: string; id: number },
): Promise<RunRecord | null> {
  const rows = await db.read<RunRow>({
    name: "get_run",
    text: `select ${RUN_COLUMNS} from ${RUN_TABLES} where r.id = $2 and (r.tenant = $1) is true`,
    values: [tenant, id],
  });
  const [run] = await toRunRecords(db, rows);
  return run ?? null;
}

/** Newest first. */
export async function listRuns(
  db: PostgresDatabase,
  params: ListRunsParams,
): Promise<{ runs: RunRecord[]; nextCursor: number | null }> {
  const { text, values } = listOfRuns(params);
  const answers = await db.read<RunRow & { readonly reached: string | null }>({ text, values });
  const reached = answers[0]?.reached ?? null;
  // If no run matches, one row without a run has `reached`.
  const rows = answers.filter(({ id }) => id !== null);
  const runs = await toRunRecords(db, rows.slice(0, params.limit));
  if (rows.length > params.limit) return { runs, nextCursor: runs.at(-1)?.id ?? null };
  return { runs, nextCursor: reached === null ? null : Number(reached) };
}

/** If at most this many runs were reported since `since`, these are sorted; else the newest runs are read in order. */
const RECENT_MAX = 1_000;
/** How many of the newest runs one call then reads. */
const RUNS_LOOKED_MAX = 500;

export function listOfRuns(params: ListRunsParams): { text: string; values: unknown[] } {
  const { tenant, schedule, status, since, cursor, limit } = params;
  const values: unknown[] = [tenant, limit + 1];
  const parameter = (value: unknown) => `$${values.push(value)}`;
  const others = cursor === undefined ? [] : [`r.id + 0 < ${parameter(cursor)}`];
  const ofTenant = "(r.tenant = $1) is true";
  const ofSchedule = schedule === undefined ? undefined : parameter(schedule);
  // A literal rather than a parameter: some statuses are rare, others are of nearly all runs, and no plan suits both.
  const inStatus = status === undefined ? undefined : `'${status}'`;
  const page = (...conditions: string[]) => `
    (select ${RUN_COLUMNS} from ${RUN_TABLES} where ${[...conditions, ...others].join(" and ")}
      order by r.id + 0 desc limit $2)`;
  const inOrder =
    ofSchedule !== undefined
      ? inStatus !== undefined
        ? [`r.schedule + 0 = ${ofSchedule} and r.status = ${inStatus}`, ofTenant]
        : [`r.schedule = ${ofSchedule}`, ofTenant]
      : inStatus !== undefined
        ? [`r.tenant = $1 and r.status = ${inStatus}`]
        : ["r.tenant || '' = $1"];
  if (since === undefined)
    return { text: `select *, null as reached from ${page(...inOrder)} found`, values };
  const from = parameter(since);
  const filters = [
    ...(ofSchedule === undefined ? [] : [`(r.schedule = ${ofSchedule}) is true`]),
    ...(inStatus === undefined ? [] : [`(r.status = ${inStatus}) is true`]),
  ];
  const few = `(select cardinality(ids) from recent) <= ${RECENT_MAX}`;
  const text = `
    with recent as materialized (select recent_runs($1, ${from}, ${RECENT_MAX + 1}) as ids),
    walked as materialized (
      select r.id, r.told_at from run r where ${[`not ${few}`, ...inOrder, ...others].join(" and ")}
       -- Not as a number: the planner, which may think there are no more than that, would read all and put them in order.
       order by r.id + 0 desc limit (select ${RUNS_LOOKED_MAX})),
    reached as materialized (select min(w.id) as reached from walked w having count(*) = ${RUNS_LOOKED_MAX})
    select found.*, (select reached from reached) as reached from (select) s left join (
      ${page(few, "r.id = any ((select ids from recent)::bigint[])", ...filters)}
      union all
      ${page(`not ${few}`, `r.id = any (array(select w.id from walked w where w.told_at >= ${from} order by w.id desc limit $2))`)}) found
      on true
     order by id desc limit $2`;
  return { text, values };
}

async function toRunRecords(db: PostgresDatabase, rows: readonly RunRow[]): Promise<RunRecord[]> {
  await untilDurable(
    db,
    rows.map(({ held_since }) => held_since),
  );
  return rows.map(toRunRecord);
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
-- The runs of a tenant that were heard of since, p_max at most. A cursor is planned for its first rows: any other query may be
-- planned to read all of them and to put them in order then.
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
  v_now bigint := enter(p_now);
  v_cutoff bigint := v_now - p_retention_ms;
  v_runs bigint[];
  v_last bigint;
  v_told bigint;
begin
  -- Losing this to a power cut means doing it again.
  set local synchronous_commit = off;
  v_runs := array(
    select r.id from run r where r.completed_at < v_cutoff order by r.completed_at, r.id limit p_limit);
  delete from run r where r.id = any (v_runs);
  -- What claims to be of a distant future was written while the clock was wrong: it must not keep everything behind it.
  with oldest as (select n.seq, n.at from notification n order by n.seq limit p_limit)
  select max(o.seq), count(*) into v_last, v_told from oldest o
   where o.seq < coalesce((select min(k.seq) from oldest k where k.at between v_cutoff and v_now + p_retention_ms), 9e18);
  if v_told > 0 then perform delete_notifications(array(select n.seq from notification n where n.seq <= v_last)); end if;
  return cardinality(v_runs) = p_limit or v_told = p_limit;
end $$;
`;
