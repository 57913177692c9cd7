-- n: index within the call. task: JSON without a seq. waiting_max: how many runs of its schedule may wait; null: no limit.
create type new_run as (
  n integer, fire integer, schedule bigint, due_at bigint, first_due_at bigint, moments integer, forced boolean,
  status text, reason text, error text, request_id text, replaces boolean, task json, waiting_max integer);

-- A run that was written, or that a missed due time was added to.
create type written_run as (n integer, fire integer, id bigint, task inserted_task);

-- Writes runs and creates their tasks, in this order. A due time that has a row gets no second one. Several runs are given
-- only if each schedule missed at most one, none ends another, and only a single one may have to be skipped.
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
  if exists (select 1 from unnest(p_runs) r cross join lateral (select open_runs from schedule where id = r.schedule offset 0) s
              where :HAS_WAITING_MAX and s.open_runs >= r.waiting_max) then
    v_given := skip_beyond_waiting_max(p_runs);
  end if;
  v_runs := array(
    select r
      from (select r, r.n, r.forced, r.schedule, r.due_at,
                   row_number() over (partition by r.schedule, r.due_at, r.forced order by r.n) as times
              from unnest(v_given) r) g
     where g.forced or (g.times = 1 and (
             select o.id from run o where o.schedule = g.schedule and o.due_at = g.due_at and not o.forced) is null)
     order by g.n);
  if exists (select 1 from unnest(v_runs) r where :MAY_SHARE_ROW) then
    v_joined := join_last(p_now, v_runs);
    v_quiet := array(select j.id from unnest(v_joined) j join unnest(v_runs) r on r.n = j.n and r.status = 'skipped');
  end if;
  if exists (select 1 from unnest(v_runs) where replaces) then cancelled := cancel_replaced(p_now, v_runs); end if;
  if exists (select 1 from unnest(v_runs) where status = 'running') then
    v_tasks := array(select i from insert_json_tasks(p_now, tasks_of(v_runs), :NO_LIMIT, :NO_LIMIT, :NO_LIMIT) i);
    if cancelled <> '[]' and cardinality(v_tasks) > 1 then v_tasks := count_replaced(v_runs, v_tasks, cancelled); end if;
  end if;
  v_first := take_run_ids(cardinality(v_runs));
  with assigned as (
    select r.*, v_first - 1 + row_number() over (order by r.n) as id,
           count(*) filter (where r.status = 'running') over (order by r.n) as task_index
      from unnest(v_runs) r where r.n <> all (array(select j.n from unnest(v_joined) j))),
  added as (
    insert into run (id, tenant, schedule, agent, task_id, due_at, first_due_at, moments, forced, status, reason, started_at,
                     completed_at, request_id, error)
    select p.id, s.tenant, p.schedule, s.agent, p.task ->> 'id', p.due_at, p.first_due_at, p.moments, p.forced, p.status,
           p.reason, case when p.status in ('running', 'failed') then p_now end,
           case when p.status <> 'running' then p_now end, p.request_id, p.error
      from assigned p cross join lateral (select tenant, agent from schedule where id = p.schedule offset 0) s)
  select v_joined || array_agg(
           row(p.n, p.fire, p.id, case when p.status = 'running' then v_tasks[p.task_index] end)::written_run)
    into written from assigned p;
  perform count_fires(p_now, v_given, written);
  if cardinality(written) > cardinality(v_quiet) then
    perform append_run_notifications(p_now, array(select w.id from unnest(written) w where w.id <> all (v_quiet) order by w.n));
  end if;
end $$;

-- Skips runs that should fire while their schedule has as many waiting runs as it may. Leaves forced runs out instead: they
-- have no due time.
create function skip_beyond_waiting_max(p_runs new_run[]) returns new_run[] language plpgsql as $$
#variable_conflict use_column
begin
  return array(
    select case when g.is_skipped then row(g.n, g.fire, g.schedule, g.due_at, g.first_due_at, g.moments, g.forced,
                                               'skipped', ':TOO_MANY_WAITING', null, null, false, null, g.waiting_max)::new_run
                else g.r end
      from (select r, r.*, :HAS_WAITING_MAX and count_waiting(r.schedule, r.waiting_max) >= r.waiting_max as is_skipped
              from unnest(p_runs) r) g
     where not (g.is_skipped and g.forced)
     order by g.n);
end $$;

-- How many runs of a schedule wait, up to p_max. Newest first: the running ones are among the oldest.
create function count_waiting(p_schedule bigint, p_max integer) returns bigint language plpgsql as $$
#variable_conflict use_column
begin
  return (
    select count(*)
      from (select 1 from run r cross join lateral (select seq from task where id = r.task_id offset 0) t
             where r.schedule + 0 = p_schedule and r.status = 'running'
               and (select l.task_seq from lease l where l.task_seq = t.seq) is null
             order by r.id + 0 desc limit p_max) w);
end $$;

-- Reserves p_count run ids for this transaction and returns the first.
create function take_run_ids(p_count integer) returns bigint language plpgsql as $$
declare
  v_first bigint := nextval('run_id');
begin
  if p_count > 1 then perform setval('run_id', v_first + p_count - 1); end if;
  return v_first;
end $$;

-- The tasks of runs as JSON, numbered. Their text is passed on unparsed.
create function tasks_of(p_runs new_run[]) returns json language plpgsql immutable as $$
#variable_conflict use_column
begin
  return (select '[' || string_agg('{"n":' || t.n || ',' || substr(t.task::text, 2), ',' order by t.n) || ']'
            from (select task, row_number() over (order by n) - 1 as n from unnest(p_runs) where task is not null) t);
end $$;

-- Due times that did not fire right after others like them share their row.
create function join_last(p_now bigint, p_runs new_run[]) returns written_run[] language plpgsql as $$
#variable_conflict use_column
declare
  v_joined written_run[];
begin
  with first as (select distinct on (schedule) * from unnest(p_runs) order by schedule, n),
  last as materialized (
    select f.*, (select a.ctid from run a where a.schedule = f.schedule order by a.id + 0 desc limit 1) as row
      from first f where :FIRST_MAY_SHARE_ROW and not f.forced),
  joined as (
    update run o set due_at = l.due_at, moments = o.moments + l.moments, reason = l.reason, completed_at = p_now
      from last l where o.ctid = l.row and o.status = l.status and not o.forced
       and (l.status = 'missed' or (o.reason = l.reason and :IS_SKIPPED_AGAIN))
       and o.due_at < l.first_due_at
       and not exists (select 1 from run b where b.schedule = l.schedule and b.due_at > o.due_at
                          and b.due_at < l.first_due_at and not b.forced)
    returning l.n, l.fire, o.id)
  select coalesce(array_agg(row(n, fire, id, null)::written_run), '{}') into v_joined from joined;
  return v_joined;
end $$;

-- Cancels the open runs that these runs replace. Returns the cancelled tasks, each with its schedule.
create function cancel_replaced(p_now bigint, p_runs new_run[]) returns jsonb language plpgsql as $$
#variable_conflict use_column
declare
  v_seqs bigint[];
  v_schedules bigint[];
begin
  select array_agg(o.seq order by o.n, o.run), array_agg(o.schedule order by o.n, o.run) into v_seqs, v_schedules
    from (select f.n, o.* from unnest(p_runs) f cross join lateral (:OPEN_TASKS offset 0) o where f.replaces) o;
  if v_seqs is null then return '[]'; end if;
  -- Counts the due time before those runs end: it may be the only one that the schedule waits for.
  update schedule s set last_due_at = greatest(s.last_due_at, d.due_at)
    from (select (select a.ctid from schedule a where a.id = r.schedule) as row, r.due_at from unnest(p_runs) r where r.replaces and not r.forced) d
   where s.ctid = d.row;
  return (
    select jsonb_agg(c.task::jsonb || jsonb_build_object('schedule', v_schedules[c.ordinal]) order by c.ordinal)
      from json_array_elements(cancel_open_tasks(p_now, v_seqs, ':REPLACED')) with ordinality c(task, ordinal));
end $$;

-- When a task was inserted, tasks that only later runs of the call replaced were still waiting before it.
create function count_replaced(p_runs new_run[], p_tasks inserted_task[], p_cancelled jsonb) returns inserted_task[]
language plpgsql as $$
#variable_conflict use_column
begin
  update task t set position = t.position + c.waited
    from (select (select a.ctid from task a where a.seq = i.seq) as row, count(*)::integer as waited
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
      from unnest(p_tasks) i cross join lateral (select position from task where seq = i.seq offset 0) t order by i.seq);
end $$;

-- Records what schedules have fired, and their last due time.
create function count_fires(p_now bigint, p_runs new_run[], p_written written_run[]) returns void language plpgsql as $$
#variable_conflict use_column
begin
  update schedule s
     set last_due_at = greatest(s.last_due_at, d.due_at),
         :RUNS_START,
         run_count = s.run_count + d.fired,
         last_run_at = case when d.fired > 0 then p_now else s.last_run_at end,
         last_run_id = coalesce(d.last_run, s.last_run_id),
         last_status = case when d.error is not null then 'failed' else s.last_status end,
         last_error = coalesce(d.error, s.last_error),
         consecutive_failures = s.consecutive_failures + d.failed
    from (select (select a.ctid from schedule a where a.id = r.schedule) as row,
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
