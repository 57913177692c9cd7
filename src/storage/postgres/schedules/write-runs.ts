import { REPLACED, SKIPPED_ROWS_MAX, TOO_MANY_WAITING } from "../../../model/run.ts";
import { addressOf, oneRow } from "../connection/one-row.ts";
import { takenUp } from "./end-run.ts";

/** The tasks of the open runs of a schedule, with these runs. */
export function openTasksOf(schedule: string): string {
  return `select (select t.seq from task t where t.id = r.task_id) as seq, r.schedule, r.id as run
            from run r where r.schedule + 0 = ${schedule} and r.status = 'running'`;
}

/** Whether a run does not fire, and so may share the row of equal ones right before it. */
export function mayShareRow(run: string): string {
  return `${run}.status in ('missed', 'skipped')`;
}

/** Whether enough due times right before `run` were skipped for the same reason. */
function isSkippedAgain(run: string): string {
  return `(${run}.reason = '${TOO_MANY_WAITING}' or (
            select count(*) from (select a.status, a.reason, a.forced from run a where a.schedule = ${run}.schedule
                                   order by a.id + 0 desc limit ${SKIPPED_ROWS_MAX}) a
             where a.status = 'skipped' and a.reason = ${run}.reason and not a.forced) = ${SKIPPED_ROWS_MAX})`;
}

/** Admission does not limit runs: their schedule does. */
const NO_LIMIT = Number.MAX_SAFE_INTEGER;

/** Whether a run may be skipped because too many wait: there is a limit, and the run fires and replaces none of them. */
function mayBeCrowdedOut(run: string): string {
  return `(${run}.status = 'running' and ${run}.waiting_max is not null and ${run}.replaces is not true)`;
}

/** Functions that write runs: the outcome of due times, and the tasks of those that fire. */
export const WRITE_RUN_FUNCTIONS = `
-- n: order within the call. task: as JSON, without a number of its own. waiting_max: how many of its schedule may wait; null:
-- any number.
create type new_run as (
  n integer, fire integer, schedule bigint, due_at bigint, first_due_at bigint, moments integer, forced boolean,
  status text, reason text, error text, request_id text, replaces boolean, task json, waiting_max integer);

-- A run that was written, or that a missed one has joined.
create type written_run as (n integer, fire integer, id bigint, task inserted_task);

-- Writes runs down and makes their tasks, in this order. A moment that has its row gets no other. Several are only given
-- where of each schedule one at most was missed, none ends another, and none but the only one may have to be skipped.
create function write_runs(p_now bigint, p_runs new_run[], out written written_run[], out cancelled jsonb)
language plpgsql as $$
#variable_conflict use_column
declare
  v_given new_run[] := p_runs;
  v_runs new_run[];
  v_joined written_run[] := '{}';
  v_quiet bigint[] := '{}';
  v_tasks inserted_task[] := '{}';
  v_first bigint;
begin
  cancelled := '[]';
  if exists (select 1 from unnest(p_runs) r cross join ${oneRow("open_runs", "schedule", "id = r.schedule")} s
              where ${mayBeCrowdedOut("r")} and s.open_runs >= r.waiting_max) then
    v_given := skip_crowded_out(p_runs);
  end if;
  v_runs := array(
    select r
      from (select r, r.n, r.forced, r.schedule, r.due_at,
                   row_number() over (partition by r.schedule, r.due_at, r.forced order by r.n) as times
              from unnest(v_given) r) g
     where g.forced or (g.times = 1 and (
             select o.id from run o where o.schedule = g.schedule and o.due_at = g.due_at and not o.forced) is null)
     order by g.n);
  if exists (select 1 from unnest(v_runs) r where ${mayShareRow("r")}) then
    v_joined := join_last(p_now, v_runs);
    v_quiet := array(select j.id from unnest(v_joined) j join unnest(v_runs) r on r.n = j.n and r.status = 'skipped');
  end if;
  if exists (select 1 from unnest(v_runs) where replaces) then cancelled := cancel_replaced(p_now, v_runs); end if;
  if exists (select 1 from unnest(v_runs) where status = 'running') then
    v_tasks := array(select i from take_in(p_now, tasks_of(v_runs), ${NO_LIMIT}, ${NO_LIMIT}, ${NO_LIMIT}) i);
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
      from placed p cross join ${oneRow("tenant, agent", "schedule", "id = p.schedule")} s)
  select v_joined || array_agg(
           row(p.n, p.fire, p.id, case when p.status = 'running' then v_tasks[p.task_place] end)::written_run)
    into written from placed p;
  perform count_fires(p_now, v_given, written);
  if cardinality(written) > cardinality(v_quiet) then
    perform tell_of_runs(p_now, array(select w.id from unnest(written) w where w.id <> all (v_quiet) order by w.n));
  end if;
end $$;

-- These runs, those that are to fire while as many of their schedule wait as may being skipped; where no due time is behind
-- one, it is left out.
create function skip_crowded_out(p_runs new_run[]) returns new_run[] language plpgsql as $$
#variable_conflict use_column
begin
  return array(
    select case when g.is_crowded_out then row(g.n, g.fire, g.schedule, g.due_at, g.first_due_at, g.moments, g.forced,
                                               'skipped', '${TOO_MANY_WAITING}', null, null, false, null, g.waiting_max)::new_run
                else g.r end
      from (select r, r.*, ${mayBeCrowdedOut("r")} and count_waiting(r.schedule, r.waiting_max) >= r.waiting_max as is_crowded_out
              from unnest(p_runs) r) g
     where not (g.is_crowded_out and g.forced)
     order by g.n);
end $$;

-- How many runs of a schedule wait, up to p_max. The newest first: those that run are among the oldest.
create function count_waiting(p_schedule bigint, p_max integer) returns bigint language plpgsql as $$
#variable_conflict use_column
begin
  return (
    select count(*)
      from (select 1 from run r cross join ${oneRow("seq", "task", "id = r.task_id")} t
             where r.schedule + 0 = p_schedule and r.status = 'running'
               and (select l.task_seq from lease l where l.task_seq = t.seq) is null
             order by r.id + 0 desc limit p_max) w);
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

-- Moments that did not fire right after others like them share their row.
create function join_last(p_now bigint, p_runs new_run[]) returns written_run[] language plpgsql as $$
#variable_conflict use_column
declare
  v_joined written_run[];
begin
  with first as (select distinct on (schedule) * from unnest(p_runs) order by schedule, n),
  last as materialized (
    select f.*, ${addressOf("run", "schedule = f.schedule order by a.id + 0 desc limit 1")} as row
      from first f where ${mayShareRow("f")} and not f.forced),
  joined as (
    update run o set due_at = l.due_at, moments = o.moments + l.moments, reason = l.reason, completed_at = p_now
      from last l where o.ctid = l.row and o.status = l.status and not o.forced
       and (l.status = 'missed' or (o.reason = l.reason and ${isSkippedAgain("l")}))
       and o.due_at < l.first_due_at
       and not exists (select 1 from run b where b.schedule = l.schedule and b.due_at > o.due_at
                          and b.due_at < l.first_due_at and not b.forced)
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
    from (select f.n, o.* from unnest(p_runs) f cross join lateral (${openTasksOf("f.schedule")} offset 0) o where f.replaces) o;
  if v_seqs is null then return '[]'; end if;
  -- Its moment has come before those end: it may be the only one that its schedule had to wait for.
  update schedule s set last_due_at = greatest(s.last_due_at, d.due_at)
    from (select ${addressOf("schedule", "id = r.schedule")} as row, r.due_at from unnest(p_runs) r where r.replaces and not r.forced) d
   where s.ctid = d.row;
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
    from (select ${addressOf("task", "seq = i.seq")} as row, count(*)::integer as waited
            from unnest(p_runs) r
            join unnest(p_tasks) i on i.id = r.task ->> 'id' and i.position > 0
            join (select l.n, l.task ->> 'tenant' as tenant, g.task ->> 'agent' as agent
                    from jsonb_array_elements(p_cancelled) g(task)
                    join unnest(p_runs) l on l.replaces and l.schedule = (g.task -> 'schedule')::bigint
                   where g.task ->> 'token' is null) w
              on w.n > r.n and w.tenant = r.task ->> 'tenant' and w.agent = r.task ->> 'agent'
           group by i.seq) c
   where t.ctid = c.row;
  return array(
    select row(i.seq, i.id, i.state, t.position, i.created_at, i.run_at, i.deadline, i."full", i.queued, i.repeats,
               i.unserved)::inserted_task
      from unnest(p_tasks) i cross join ${oneRow("position", "task", "seq = i.seq")} t order by i.seq);
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
         last_error = coalesce(d.error, s.last_error),
         consecutive_failures = s.consecutive_failures + d.failed
    from (select ${addressOf("schedule", "id = r.schedule")} as row,
                 max(due_at) filter (where not forced) as due_at,
                 count(*) filter (where written and status = 'running')::integer as running,
                 count(*) filter (where written and status in ('running', 'failed')) as fired,
                 count(*) filter (where written and status = 'failed')::integer as failed,
                 max(id) filter (where status in ('running', 'failed')) as last_run,
                 (array_agg(error order by n desc) filter (where written and status = 'failed'))[1] as error
            from (select r.*, w.id, w.id is not null as written
                    from unnest(p_runs) r left join unnest(p_written) w on w.n = r.n) r
           group by schedule) d
   where s.ctid = d.row;
end $$;
`;
