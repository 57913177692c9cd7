import { REPLACED } from "../../model/schedule.ts";
import type { Fire, FiredSchedule, NewRun } from "../storage.ts";
import { type CancelledJson, signalCancelled, toEndedTask } from "./cancel-these.ts";
import type { PostgresDatabase } from "./database.ts";
import { takenUp } from "./end-run.ts";
import { type InsertedRow, toInserted, toTaskRow } from "./insert-tasks.ts";
import { isNoted } from "./notes.ts";
import { PREEMPT } from "./preempt-tasks.ts";
import { RELEASED_MAX } from "./settle-moves.ts";
import { cleanText } from "./text.ts";

/** Writes down what became of moments, and makes the tasks of those that fire. */
export async function fireSchedules(db: PostgresDatabase, fires: readonly Fire[]): Promise<FiredSchedule[]> {
  const rows = await db.write<FiredRow>({
    name: "fire_schedules",
    text: "select * from fire_schedules($1, $2, $3)",
    values: [JSON.stringify(fires.map(toFireRow)), JSON.stringify(toRunRows(fires))],
  });
  const byFire = new Map(rows.map((row) => [row.fire, row]));
  const fired = fires.map(({ tenant, id }, index): FiredSchedule => {
    const row = byFire.get(index);
    if (row === undefined) return { tenant, id, fired: false, runs: [], cancelled: [] };
    const runs = row.runs.map((run) => ({ id: run.id, task: run.task && toInserted(run.task) }));
    return { tenant, id, fired: true, runs, cancelled: row.cancelled.map(toEndedTask) };
  });
  if (rows.length === 0) return fired;
  signalCancelled(
    db,
    rows.flatMap(({ cancelled }) => cancelled),
  );
  db.signal({ kind: "events" });
  db.signal({ kind: "work" });
  db.signal({ kind: "due" });
  db.signal({ kind: "schedules" });
  return fired;
}

interface FiredRow {
  readonly fire: number;
  readonly runs: readonly { readonly id: number; readonly task: InsertedRow | null }[];
  readonly cancelled: readonly CancelledJson[];
}

function toFireRow({ tenant, id, revision, nextFireAt, pauses }: Fire, n: number): object {
  return { n, tenant, id, revision, next_fire_at: nextFireAt, pauses: pauses && cleanText(pauses) };
}

/** All runs in order. */
function toRunRows(fires: readonly Fire[]): object[] {
  return fires
    .flatMap(({ id, runs }, fire) => runs.map((run) => ({ fire, schedule: id, ...toRunRow(run) })))
    .map((run, n) => ({ n, ...run }));
}

function toRunRow(run: NewRun): object {
  const { dueAt, firstDueAt, moments, forced, status } = run;
  const row = { due_at: dueAt, first_due_at: firstDueAt, moments, forced, status };
  switch (run.status) {
    case "running":
      return {
        ...row,
        request_id: cleanText(run.requestId),
        replaces: run.replaces,
        task: toTaskRow(run.task),
      };
    case "failed":
      return { ...row, request_id: cleanText(run.requestId), error: cleanText(run.error) };
    case "skipped":
    case "missed":
      return { ...row, reason: cleanText(run.reason) };
  }
}

/** The tasks of the runs of a schedule that go, with those. */
export function openTasksOf(schedule: string): string {
  return `select (select t.seq from task t where t.id = r.task_id) as seq, r.schedule, r.id as run
            from run r where r.schedule + 0 = ${schedule} and r.status = 'running'`;
}

/** Runs are bounded by their schedule, not by the queue. */
const NO_LIMIT = Number.MAX_SAFE_INTEGER;

/**
 * Nearly always, what becomes of one schedule has nothing to do with another, nor one run with the next: then all are
 * written down at once. Where order matters, it is done in order.
 */
export const FIRE_FUNCTIONS = `
-- n: order within the call.
create type new_fire as (n integer, tenant text, id bigint, revision bigint, next_fire_at bigint, pauses text);

-- n: order within the call. task: as JSON, without a number of its own.
create type new_run as (
  n integer, fire integer, schedule bigint, due_at bigint, first_due_at bigint, moments integer, forced boolean,
  status text, reason text, error text, request_id text, replaces boolean, task json);

-- A run that was written, or that a missed one has joined.
create type written_run as (n integer, fire integer, id bigint, task inserted_task);

create function fire_schedules(p_now bigint, p_fires json, p_runs json)
returns table (fire integer, runs json, cancelled json) language plpgsql as $$
#variable_conflict use_column
declare
  v_now bigint := enter(p_now);
  v_fires new_fire[] := array(select f from json_populate_recordset(null::new_fire, p_fires) f order by f.n);
  v_runs new_run[] := array(select r from json_populate_recordset(null::new_run, p_runs) r order by r.n);
  v_fire new_fire;
  v_own new_run[];
begin
  if not order_matters(v_fires, v_runs) then
    return query select * from fire_these(v_now, v_fires, v_runs, false);
  else
    foreach v_fire in array v_fires loop
      v_own := array(select r from unnest(v_runs) r where r.fire = v_fire.n order by r.n);
      return query select * from fire_these(v_now, array[v_fire], v_own, order_matters(array[v_fire], v_own));
    end loop;
  end if;
  if exists (select 1 from release) or ${isNoted("sessions")} or ${isNoted("batches")} then
    perform settle_moves(v_now, ${RELEASED_MAX});
  end if;
  ${PREEMPT}
end $$;

-- Whether one is named twice, several moments of one were missed, or a run ends another that is made with it.
create function order_matters(p_fires new_fire[], p_runs new_run[]) returns boolean language plpgsql immutable as $$
#variable_conflict use_column
begin
  return (select count(*) > count(distinct id) from unnest(p_fires))
      or exists (
           select 1 from (select *, row_number() over (partition by fire order by n) as place from unnest(p_runs)) r
            group by fire
           having count(*) filter (where status = 'missed') > 1 or bool_or(replaces and place > 1));
end $$;

create function fire_these(p_now bigint, p_fires new_fire[], p_runs new_run[], p_in_order boolean)
returns table (fire integer, runs json, cancelled json) language plpgsql as $$
#variable_conflict use_column
declare
  v_fires new_fire[];
  v_runs new_run[];
  v_run new_run;
  v_step record;
  v_written written_run[] := '{}';
  v_cancelled jsonb := '[]';
begin
  -- Before any run ends: what ends may be what its schedule was waiting for.
  with moved as (
    update schedule s
       set next_fire_at = case when s.status = 'active' then f.next_fire_at end, revision = s.revision + 1
      from unnest(p_fires) f
     where s.id = f.id and (s.tenant = f.tenant) is true and s.revision = f.revision
    returning f.n)
  select array_agg(f) into v_fires from unnest(p_fires) f where f.n = any (array(select n from moved));
  if v_fires is null then return; end if;
  v_runs := array(select r from unnest(p_runs) r where r.fire = any (array(select f.n from unnest(v_fires) f)) order by r.n);
  if not p_in_order then
    select written, cancelled into v_written, v_cancelled from write_runs(p_now, v_runs);
  else
    foreach v_run in array v_runs loop
      select * into v_step from write_runs(p_now, array[v_run]);
      v_written := v_written || v_step.written;
      v_cancelled := v_cancelled || v_step.cancelled;
    end loop;
  end if;
  perform settle_fired(p_now, v_fires, v_runs);
  return query
    select f.n,
           coalesce((select json_agg(json_build_object('id', w.id, 'task', case when (w.task).seq is not null then w.task end)
                                     order by w.n)
                       from unnest(v_written) w where w.fire = f.n), '[]'),
           coalesce((select json_agg(c.task order by c.place)
                       from jsonb_array_elements(v_cancelled) with ordinality c(task, place)
                      where (c.task -> 'schedule')::bigint = f.id), '[]')
      from unnest(v_fires) f;
end $$;

-- Writes runs down and makes their tasks, in this order. A moment that has its row gets no other. Several are only given
-- where of each schedule one at most was missed, and none ends another.
create function write_runs(p_now bigint, p_runs new_run[], out written written_run[], out cancelled jsonb)
language plpgsql as $$
#variable_conflict use_column
declare
  v_runs new_run[];
  v_joined written_run[] := '{}';
  v_tasks inserted_task[] := '{}';
  v_first bigint;
begin
  cancelled := '[]';
  v_runs := array(
    select r
      from (select r, r.n, r.forced, r.schedule, r.due_at,
                   row_number() over (partition by r.schedule, r.due_at, r.forced order by r.n) as times
              from unnest(p_runs) r) g
     where g.forced or (g.times = 1 and not exists (
             select 1 from run o where o.schedule = g.schedule and o.due_at = g.due_at and not o.forced))
     order by g.n);
  if exists (select 1 from unnest(v_runs) where status = 'missed') then v_joined := join_missed(p_now, v_runs); end if;
  if exists (select 1 from unnest(v_runs) where replaces) then cancelled := cancel_replaced(p_now, v_runs); end if;
  if exists (select 1 from unnest(v_runs) where status = 'running') then
    v_tasks := array(select i from take_in(p_now, tasks_of(v_runs), ${NO_LIMIT}, ${NO_LIMIT}) i);
    if cancelled <> '[]' and cardinality(v_tasks) > 1 then v_tasks := count_replaced(v_runs, v_tasks, cancelled); end if;
  end if;
  v_first := take_run_ids(cardinality(v_runs));
  with placed as (
    select r.*, v_first - 1 + row_number() over (order by r.n) as id,
           count(*) filter (where r.status = 'running') over (order by r.n) as task_place
      from unnest(v_runs) r where r.n <> all (array(select j.n from unnest(v_joined) j))),
  added as (
    insert into run (id, tenant, schedule, agent, task_id, due_at, first_due_at, moments, forced, status, reason, started_at,
                     completed_at, request_id, error)
    select p.id, s.tenant, p.schedule, s.agent, p.task ->> 'id', p.due_at, p.first_due_at, p.moments, p.forced, p.status,
           p.reason, case when p.status in ('running', 'failed') then p_now end,
           case when p.status <> 'running' then p_now end, p.request_id, p.error
      from placed p join schedule s on s.id = p.schedule)
  select v_joined || array_agg(
           row(p.n, p.fire, p.id, case when p.status = 'running' then v_tasks[p.task_place] end)::written_run)
    into written from placed p;
  perform count_fires(p_now, p_runs, written);
  if cardinality(written) > 0 then
    perform tell_of_runs(p_now, array(select w.id from unnest(written) w order by w.n));
  end if;
end $$;

-- The first of p_count ids of runs that are now this transaction's own.
create function take_run_ids(p_count integer) returns bigint language plpgsql as $$
declare
  v_first bigint := nextval('run_id');
begin
  if p_count > 1 then perform setval('run_id', v_first + p_count - 1); end if;
  return v_first;
end $$;

-- The tasks of runs as JSON, numbered. Their text is taken as it is: nobody looks into it.
create function tasks_of(p_runs new_run[]) returns json language plpgsql immutable as $$
#variable_conflict use_column
begin
  return (select '[' || string_agg('{"n":' || t.n || ',' || substr(t.task::text, 2), ',' order by t.n) || ']'
            from (select task, row_number() over (order by n) - 1 as n from unnest(p_runs) where task is not null) t);
end $$;

-- Moments that were missed right after others share their row.
create function join_missed(p_now bigint, p_runs new_run[]) returns written_run[] language plpgsql as $$
#variable_conflict use_column
declare
  v_joined written_run[];
begin
  with first as (select distinct on (schedule) * from unnest(p_runs) order by schedule, n),
  last as materialized (
    select f.*, (select o.id from run o where o.schedule = f.schedule order by o.id desc limit 1) as id
      from first f where f.status = 'missed' and not f.forced),
  joined as (
    update run o set due_at = l.due_at, moments = o.moments + l.moments, reason = l.reason, completed_at = p_now
      from last l where o.id = l.id and o.status = 'missed' and not o.forced and o.due_at < l.first_due_at
    returning l.n, l.fire, o.id)
  select coalesce(array_agg(row(n, fire, id, null)::written_run), '{}') into v_joined from joined;
  return v_joined;
end $$;

-- Cancels what runs of schedules go that these take the place of. Answers what that was, each with its schedule.
create function cancel_replaced(p_now bigint, p_runs new_run[]) returns jsonb language plpgsql as $$
#variable_conflict use_column
declare
  v_seqs bigint[];
  v_schedules bigint[];
begin
  select array_agg(o.seq order by o.n, o.run), array_agg(o.schedule order by o.n, o.run) into v_seqs, v_schedules
    from (select f.n, o.* from unnest(p_runs) f cross join lateral (${openTasksOf("f.schedule")}) o where f.replaces) o;
  if v_seqs is null then return '[]'; end if;
  return (
    select jsonb_agg(c.task::jsonb || jsonb_build_object('schedule', v_schedules[c.place]) order by c.place)
      from json_array_elements(cancel_these(p_now, v_seqs, '${REPLACED}')) with ordinality c(task, place));
end $$;

-- When a task came, what only later ones of its call have replaced was still waiting before it.
create function count_replaced(p_runs new_run[], p_tasks inserted_task[], p_cancelled jsonb) returns inserted_task[]
language plpgsql as $$
#variable_conflict use_column
begin
  update task t set position = t.position + c.waited
    from (select i.seq, count(*)::integer as waited
            from unnest(p_runs) r
            join unnest(p_tasks) i on i.id = r.task ->> 'id' and i.position > 0
            join (select l.n, l.task ->> 'tenant' as tenant, g.task ->> 'agent' as agent
                    from jsonb_array_elements(p_cancelled) g(task)
                    join unnest(p_runs) l on l.replaces and l.schedule = (g.task -> 'schedule')::bigint
                   where g.task ->> 'token' is null) w
              on w.n > r.n and w.tenant = r.task ->> 'tenant' and w.agent = r.task ->> 'agent'
           group by i.seq) c
   where t.seq = c.seq;
  return array(
    select row(i.seq, i.id, i.state, t.position, i.created_at, i.run_at, i.deadline, i."full", i.queued, i.repeats)::inserted_task
      from unnest(p_tasks) i join task t on t.seq = i.seq order by i.seq);
end $$;

-- Writes down what schedules have fired, and the last of their moments.
create function count_fires(p_now bigint, p_runs new_run[], p_written written_run[]) returns void language plpgsql as $$
#variable_conflict use_column
begin
  update schedule s
     set last_due_at = greatest(s.last_due_at, d.due_at),
         ${takenUp("s", "d.running", "p_now")},
         run_count = s.run_count + d.fired,
         last_run_at = case when d.fired > 0 then p_now else s.last_run_at end,
         last_run_id = coalesce(d.last_run, s.last_run_id),
         last_status = case when d.error is not null then 'failed' else s.last_status end,
         last_error = coalesce(d.error, s.last_error)
    from (select schedule, max(due_at) filter (where not forced) as due_at,
                 count(*) filter (where written and status = 'running')::integer as running,
                 count(*) filter (where written and status in ('running', 'failed')) as fired,
                 max(id) filter (where status in ('running', 'failed')) as last_run,
                 (array_agg(error order by n desc) filter (where written and status = 'failed'))[1] as error
            from (select r.*, w.id, w.id is not null as written
                    from unnest(p_runs) r left join unnest(p_written) w on w.n = r.n) r
           group by schedule) d
   where s.id = d.schedule;
end $$;

-- Once all of their runs are written: some are paused, and one that was due once, and missed that, has failed.
create function settle_fired(p_now bigint, p_fires new_fire[], p_runs new_run[]) returns void language plpgsql as $$
#variable_conflict use_column
declare
  v_paused bigint[];
  v_reasons text[];
begin
  select array_agg(id order by n), array_agg(pauses order by n) into v_paused, v_reasons
    from unnest(p_fires) where pauses is not null;
  if v_paused is not null then
    update schedule set status = 'paused', next_fire_at = null, updated_at = p_now where id = any (v_paused);
    perform tell_of_schedules(p_now, 'schedule.paused', v_paused, v_reasons);
  end if;
  if not exists (select 1 from unnest(p_runs) where status = 'missed') then return; end if;
  update schedule s
     set last_status = 'missed', last_error = l.reason,
         status = case when s.next_fire_at is null and s.open_runs = 0 then 'failed' else s.status end,
         updated_at = case when s.next_fire_at is null and s.open_runs = 0 then p_now else s.updated_at end
    from (select distinct on (fire) * from unnest(p_runs) order by fire, n desc) l
    join unnest(p_fires) f on f.n = l.fire and f.pauses is null
   where l.status = 'missed' and s.id = l.schedule and s.kind = 'once';
end $$;
`;
