-- What a statement changes in one agent queue. It either adds to ready or takes from it, never both. served: token of the
-- last start; inflight is then the number of starts. added_*: the smallest entry added to ready. exempt: waiting tasks that
-- admission does not count. parked: waiting tasks that their session, batch or concurrency key holds back.
create type queue_delta as (
  line bigint, waiting integer, exempt integer, parked integer, ready integer, inflight integer, served bigint,
  added_rank bigint, added_seq bigint);

-- Takes the write lock and returns the time. It is a statement of its own, so that the next statement sees what the last
-- writer committed.
create function take_write_lock(p_now bigint) returns bigint language plpgsql as $$
begin
  perform pg_advisory_xact_lock(7682);
  -- The clock is read under the write lock, so that times follow the order of commits. Tests pass p_now.
  return coalesce(p_now, floor(extract(epoch from clock_timestamp()) * 1000)::bigint);
end $$;

-- For an operation that answers what it saw and may write nothing: ends commit before they are on disk, and an answer must
-- not show one that a crash could undo.
create function flush_with_commit() returns void language plpgsql as $$
begin
  perform pg_logical_emit_message(true, 'rota', '');
end $$;

-- Reserves p_count event numbers for this transaction and returns the first.
create function take_event_numbers(p_count bigint) returns bigint language plpgsql as $$
declare
  v_first bigint;
begin
  v_first := nextval('event_seq');
  if p_count > 1 then perform setval('event_seq', v_first + p_count - 1); end if;
  return v_first;
end $$;

-- Appends events to the log, numbered from p_first on. Consecutive events that differ only in the task share a row.
create function append_events(
  p_first bigint, p_now bigint, p_types text[], p_tenants text[], p_task_seqs bigint[], p_data text[])
returns void language plpgsql as $$
#variable_conflict use_column
begin
  -- Usually all events are alike, and nothing has to be sorted.
  if cardinality(p_types) > 0 and p_types[1] = all (p_types) and p_tenants[1] = all (p_tenants)
     and (p_data[1] = all (p_data) or array_remove(p_data, null) = '{}') then
    insert into event (last_seq, count, type, at, tenant, task_seqs, data)
    values (p_first + cardinality(p_task_seqs) - 1, cardinality(p_task_seqs), p_types[1], p_now, p_tenants[1], p_task_seqs,
            p_data[1]);
    return;
  end if;
  insert into event (last_seq, count, type, at, tenant, task_seqs, data)
  select p_first + max(ordinal) - 1, count(*), type, p_now, tenant, array_agg(task_seq order by ordinal), data
    from (select *, ordinal - row_number() over (partition by type, tenant, data order by ordinal) as run
            from unnest(p_types, p_tenants, p_task_seqs, p_data) with ordinality
                   as e(type, tenant, task_seq, data, ordinal)) e
   group by type, tenant, data, run;
end $$;

-- Applies deltas: one update for each agent queue and lane, after ready has been changed.
create function apply_deltas(p_deltas queue_delta[]) returns void language plpgsql as $$
#variable_conflict use_column
declare
  v_limited bigint[];
  v_freed bigint[];
  v_critical boolean;
  v_tenants text[];
begin
  with moved as (
    select line, sum(waiting)::integer as waiting, sum(exempt)::integer as exempt, sum(parked)::integer as parked,
           sum(ready)::integer as ready, sum(inflight)::integer as inflight,
           max(served) as served, coalesce(sum(inflight) filter (where served is not null), 0)::integer as starts,
           min(array[added_rank, added_seq]) filter (where added_seq is not null) as added
      from unnest(p_deltas) group by line),
  adjusted as (
    select m.*, o.address, o.lane, o.tenant, l.strategy, o.room as old_room, o.startable and o.ahead as was_urgent,
           -- Queues of an agent with its own limit, or with several queues in the lane, are refreshed below.
           case when o.standing = 0 then greatest(least(o.ready + m.ready, l.per_agent - o.inflight - m.inflight), 0) else 0 end
             as room,
           case when m.ready < 0 then next.rank when h.added_first then m.added[1] else o.head_rank end as rank,
           case when m.ready < 0 then next.task_seq when h.added_first then m.added[2] else o.head_seq end as seq
      from moved m
      -- Looked up, and updated by its address: a plan with joins, made while there are few rows, would read all of them when
      -- there are many.
     cross join lateral (select *, ctid as address from line where id = m.line offset 0) o
      join lane l on l.name = o.lane
     cross join lateral (values (
       m.ready > 0 and (o.head_seq is null or (m.added[1], m.added[2]) < (o.head_rank, o.head_seq)))) h(added_first)
      -- If tasks left, the search for the new head starts at the old one: only dead index entries lie before it.
      left join lateral (
        select r.rank, r.task_seq from ready r
         where m.ready < 0 and r.line = m.line and (r.rank, r.task_seq) >= (o.head_rank, o.head_seq)
         order by r.rank, r.task_seq limit 1) next on true),
  counted as (
    update line n
       set waiting = n.waiting + p.waiting,
           exempt = n.exempt + p.exempt,
           parked = n.parked + p.parked,
           ready = n.ready + p.ready,
           inflight = n.inflight + p.inflight,
           last_served = greatest(n.last_served, p.served),
           head_rank = p.rank,
           head_seq = p.seq,
           room = p.room,
           startable = p.room > 0,
           ahead = p.rank is not null and (p.rank <= :PRIORITY_CRITICAL or p.strategy = 'priority-fifo')
      from adjusted p
     where n.ctid = p.address
    returning n.id, n.agent_max is not null or n.shared as limited, n.agent_max is not null and p.inflight < 0 as freed,
              p.added[1] <= :PRIORITY_CRITICAL as critical),
  tenants as (
    update tenant_line t
       set waiting = t.waiting + d.waiting, exempt = t.exempt + d.exempt, inflight = t.inflight + d.inflight,
           supply = t.supply + d.supply,
           urgent_lines = t.urgent_lines + d.urgent_lines,
           last_served = greatest(t.last_served, d.served),
           owed = greatest(t.owed - d.starts, 0),
           startable = not t.disabled and t.supply + d.supply > 0 and (t.inflight + d.inflight >= t.lane_max) is not true
      from (select lane, tenant, sum(waiting)::integer as waiting, sum(exempt)::integer as exempt,
                   sum(inflight)::integer as inflight, sum(room - old_room) as supply, max(served) as served,
                   sum(starts)::integer as starts,
                   sum((room > 0 and rank is not null and (rank <= :PRIORITY_CRITICAL or strategy = 'priority-fifo'))::integer
                       - was_urgent::integer)::integer as urgent_lines
              from adjusted group by lane, tenant) d
     cross join lateral (select ctid as address from tenant_line where lane = d.lane and tenant = d.tenant offset 0) a
     where t.ctid = a.address
    returning t.lane, d.waiting, case when t.disabled then d.waiting else d.exempt end as exempt, d.inflight,
              case when t.max_inflight is not null or t.crowded then t.tenant end as refreshed),
  totals as (
    update lane l
       set waiting = l.waiting + d.waiting, exempt = l.exempt + d.exempt, inflight = l.inflight + d.inflight
      from (select lane, sum(waiting)::integer as waiting, sum(exempt)::integer as exempt,
                   sum(inflight)::integer as inflight
              from tenants group by lane) d
     where l.name = d.lane and (d.waiting <> 0 or d.exempt <> 0 or d.inflight <> 0))
  select array_agg(id) filter (where limited), array_agg(id) filter (where freed), bool_or(critical),
         (select array_agg(refreshed) filter (where refreshed is not null) from tenants)
    into v_limited, v_freed, v_critical, v_tenants from counted;
  if v_tenants is not null then perform refresh_tenants(v_tenants); end if;
  -- An agent with its own limit can fill up or get room in one lane, and so change in all others.
  if v_limited is not null then
    perform refresh_startable(array(
      select s.id from line n join line s on s.tenant = n.tenant and s.agent = n.agent where n.id = any (v_limited)));
  end if;
  -- A slot that it freed in one lane may be what a critical task in another lane waits for.
  if v_freed is not null then
    perform defer_work('lanes_to_recheck', array(
      select distinct s.lane
        from line n join line s on s.tenant = n.tenant and s.agent = n.agent where n.id = any (v_freed)));
  end if;
  if v_critical then
    perform defer_work('new_critical_tasks', array(select added_seq::text from unnest(p_deltas) where added_rank <= :PRIORITY_CRITICAL));
  end if;
end $$;

-- Computes what these agent queues can start, and which go ahead, by the current limits.
create function refresh_startable(p_queues bigint[]) returns void language plpgsql as $$
#variable_conflict use_column
declare
  v_tenants text[];
begin
  with fresh as (
    select n.ctid as address, n.lane, n.tenant, n.room as old_room, n.startable and n.ahead as was_urgent,
           greatest(:ROOM, 0) as room, :AHEAD as ahead
      from line n join lane l on l.name = n.lane where n.id = any (p_queues)),
  changed as (
    update line n set room = f.room, startable = f.room > 0, ahead = f.ahead
      from fresh f
     where n.ctid = f.address and (n.room, n.ahead) is distinct from (f.room, f.ahead)
    returning f.*),
  tenants as (
    update tenant_line t
       set supply = t.supply + d.supply, urgent_lines = t.urgent_lines + d.urgent_lines,
           startable = not t.disabled and t.supply + d.supply > 0 and (t.inflight >= t.lane_max) is not true
      from (select lane, tenant, sum(room - old_room) as supply,
                   sum((room > 0 and ahead)::integer - was_urgent::integer)::integer as urgent_lines
              from changed group by lane, tenant) d
     cross join lateral (select ctid as address from tenant_line where lane = d.lane and tenant = d.tenant offset 0) a
     where t.ctid = a.address
    returning case when t.max_inflight is not null or t.crowded then t.tenant end as refreshed)
  select array_agg(refreshed) filter (where refreshed is not null) into v_tenants from tenants;
  if v_tenants is not null then perform refresh_tenants(v_tenants); end if;
end $$;

-- Computes where these tenants can start something by their current limits, and when it is their turn. A tenant with its
-- own limit can fill up or get room in one lane, and so change in all others.
create function refresh_tenants(p_tenants text[]) returns void language plpgsql as $$
begin
  -- No self-join: such a plan, made while there are few tenants, would read all of them when there are many.
  update tenant_line t
     set (startable, turn_unowed, turn_inflight, turn_served) = (
           select f.startable, case when t.crowded and f.startable then t.owed = 0 end,
                  case when t.crowded and f.startable then t.inflight end,
                  case when t.crowded and f.startable then t.last_served end
             from (select :CAN_START as startable) f)
   where t.tenant = any (p_tenants) and (t.crowded or t.startable <> (:CAN_START));
end $$;

-- Adds to the number of tasks per tenant and state, or subtracts from it.
create function count_tasks(p_tenants text[], p_states text[], p_tasks integer[]) returns void language plpgsql as $$
begin
  update tally y set tasks = y.tasks + d.tasks
    from (select tenant, state, sum(tasks) as tasks
            from unnest(p_tenants, p_states, p_tasks) as u(tenant, state, tasks) group by tenant, state) d
   cross join lateral (select ctid as address from tally where tenant = d.tenant and state = d.state offset 0) a
   where y.ctid = a.address and d.tasks <> 0;
end $$;

-- The same for tasks that moved from one state to another.
create function count_moves(p_tenants text[], p_from text[], p_to text[]) returns void language plpgsql as $$
declare
  v_many integer[] := array[cardinality(p_tenants)];
begin
  if p_tenants[1] = all (p_tenants) and p_from[1] = all (p_from) and p_to[1] = all (p_to) then
    update tally y set tasks = y.tasks + case when y.state = p_to[1] then v_many[1] else -v_many[1] end
     where y.tenant = p_tenants[1] and y.state in (p_from[1], p_to[1]) and p_from[1] <> p_to[1];
    return;
  end if;
  perform count_tasks(p_tenants || p_tenants, p_from || p_to, array_fill(-1, v_many) || array_fill(1, v_many));
end $$;
