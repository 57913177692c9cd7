create type started_task as (:STARTED_COLUMNS);

-- p_max: how many tasks to start in all lanes; null: no limit. p_seqs, p_tokens, p_results: attempts that have ended;
-- p_more: other values of some of them. p_each, p_left: for each lane, what tenants may take of its slots; see
-- tenant-shares.ts. Rows: "lost": number is the token of an attempt that the node no longer held. "expired": tenant, agent
-- and lane. "settled": another task may be able to start, or has ended. "freed": a limit held tasks back, so other nodes
-- may be able to start tasks now; only if there are other nodes (p_others). "running" and "assigned": number is the token,
-- the rest is the task. "critical": in lane, a critical task lacks only a slot.
-- p_begun, p_begun_tokens, p_begun_at: assigned attempts that have begun. p_states: what the tasks of each lane are claimed
-- as; null: running. p_ahead: how many more to claim ahead in each lane; null: none, and "critical" is not returned.
create function finish_and_claim(
  p_now bigint, p_node text, p_seqs bigint[], p_tokens bigint[], p_results text[], p_more json, p_progress json,
  p_lanes text[], p_limits integer[], p_each integer[], p_left text[], p_max integer, p_others boolean,
  p_begun bigint[] default null, p_begun_tokens bigint[] default null, p_begun_at bigint[] default null,
  p_states text[] default null, p_ahead integer[] default null)
returns table (what text, number bigint, :STARTED_COLUMNS) language plpgsql as $$
#variable_conflict use_column
declare
  v_now bigint;
  v_claimable integer := p_max;
  v_lost bigint[];
  v_moved queue_delta[];
  v_freed bigint[];
  v_expired record;
  v_seqs bigint[];
  v_first bigint;
  v_ended boolean;
  v_contested boolean;
  v_left integer;
  v_passed boolean;
  v_started boolean := false;
  v_critical boolean;
  v_as text;
begin
  v_now := take_write_lock(p_now);
  select exists (select 1 from key_hold where contested) into v_contested from node where id = p_node and not dead;
  if not found then
    return query select 'lost', t.token, (null::started_task).* from unnest(p_tokens) t(token);
    return;
  end if;
  if p_progress is not null then perform write_progress(v_now, p_node, p_progress); end if;
  if p_begun is not null then perform begin_attempts(v_now, p_node, p_begun, p_begun_tokens, p_begun_at); end if;
  if cardinality(p_seqs) > 0 then
    -- The end of an attempt that was not reported as begun: it began when it was claimed.
    if exists (select 1 from lease where task_seq = any (p_seqs) and state = 'assigned') then
      perform begin_ending(v_now, p_node, p_seqs, p_tokens, p_more);
    end if;
    select lost, moved, freed into v_lost, v_moved, v_freed
      from finish_held_tasks(v_now, p_node, p_seqs, p_tokens, p_results, p_more);
    if v_lost is not null then
      return query select 'lost', t.token, (null::started_task).* from unnest(v_lost) t(token);
    end if;
  end if;
  v_ended := v_moved is not null or v_freed is not null;
  if p_others and v_ended and (v_contested or is_limited(v_freed || array(select line from unnest(v_moved)))) then
    return query select 'freed', null::bigint, (null::started_task).*;
  end if;
  -- A busy node frees and fills the same agent queues: then both are recorded together.
  if v_moved is not null
     or (v_freed is not null and (v_contested or cardinality(p_lanes) <> 1 or not can_record_later(v_freed, p_lanes[1]))) then
    perform apply_deltas(v_moved || freed_slots(v_freed));
    v_freed := null;
  end if;
  if cardinality(p_lanes) > 0 then
    for v_expired in select * from expire_overdue(v_now, :EXPIRED_PER_CLAIM_MAX) loop
      what := 'expired';
      tenant := v_expired.tenant;
      agent := v_expired.agent;
      lane := v_expired.lane;
      return next;
    end loop;
  end if;
  if exists (select 1 from release) or :SESSIONS_DEFERRED or :BATCHES_DEFERRED or :KEYS_DEFERRED then
    if settle_moves(v_now, :RELEASED_MAX) then
      return query select 'settled', null::bigint, (null::started_task).*;
    end if;
    v_contested := exists (select 1 from key_hold where contested);
    -- A task may go ahead of fairness now.
    if v_freed is not null and (v_contested or not can_record_later(v_freed, p_lanes[1])) then
      perform apply_deltas(freed_slots(v_freed));
      v_freed := null;
    end if;
  end if;
  for i in 1 .. cardinality(p_lanes) loop
    -- While all slots are busy no claim leaves one free, so keys are also passed on whenever an attempt ends.
    v_left := least(p_limits[i], v_claimable);
    if v_contested and v_ended and v_left > 0 then
      perform pass_keys_on(v_now, p_lanes[i], :KEYS_LOOKED_AT_AFTER_END, p_each[i], p_left[i]::jsonb);
    end if;
    v_passed := false;
    v_as := coalesce(p_states[i], 'running');
    -- A node whose slots are all busy claims ahead only.
    while v_left > 0 or p_ahead[i] is null loop
      -- A separate statement: the next one would not see leases that are written while it runs.
      select seqs, first_token into v_seqs, v_first 
        from claim_tasks(v_now, p_node, p_lanes[i], v_left, v_freed, p_each[i], p_left[i], v_as);
      return query
        select v_as, v_first + c.ordinal - 1, :STARTED_IN_LANES
          from unnest(v_seqs) with ordinality c(seq, ordinal) join task t on t.seq = c.seq
         order by c.ordinal;
      v_claimable := v_claimable - coalesce(cardinality(v_seqs), 0);
      exit when not v_contested and p_ahead[i] is null;
      v_freed := null;
      v_left := v_left - coalesce(cardinality(v_seqs), 0);
      if p_each[i] is not null then p_left[i] := slots_after(p_each[i], p_left[i]::jsonb, v_seqs); end if;
      exit when not v_contested;
      v_started := v_started or v_seqs is not null;
      exit when v_passed and v_seqs is null;
      v_passed := v_left > 0 and pass_keys_on(v_now, p_lanes[i], :KEYS_LOOKED_AT_KEYS, p_each[i], p_left[i]::jsonb);
      exit when not v_passed;
    end loop;
    if p_ahead[i] is not null then
      select seqs, first_token, critical_waits into v_seqs, v_first, v_critical
        from claim_tasks(v_now, p_node, p_lanes[i], least(p_ahead[i], v_claimable), v_freed, p_each[i], p_left[i], 'ahead');
      return query
        select 'assigned', v_first + c.ordinal - 1, :STARTED_IN_LANES
          from unnest(v_seqs) with ordinality c(seq, ordinal) join task t on t.seq = c.seq
         order by c.ordinal;
      v_claimable := v_claimable - coalesce(cardinality(v_seqs), 0);
      v_freed := null;
      v_started := v_started or (v_contested and v_seqs is not null);
      if v_critical then
        what := 'critical';
        lane := p_lanes[i];
        return next;
      end if;
    end if;
  end loop;
  -- A started task may block the holder of a key. Another task could take the key in a lane that this call has already
  -- claimed from.
  if v_started then return query select 'settled', null::bigint, (null::started_task).*; end if;
  :PREEMPT
  -- Nothing waits for the disk under the write lock. The caller flushes after the commit; readers wait (readDurably in database.ts).
  set local synchronous_commit = off;
end $$;

-- For a node that runs nothing else: claims one task that runs alone, from the agent queue of such tasks that was served
-- longest ago.
create function claim_alone(p_now bigint, p_node text, p_lanes text[])
returns table (what text, number bigint, :STARTED_COLUMNS) language plpgsql as $$
#variable_conflict use_column
declare
  v_now bigint := take_write_lock(p_now);
  v_expired record;
  v_queue bigint;
  v_lane text;
  v_token bigint;
  v_seqs bigint[];
begin
  perform 1 from node where id = p_node and not dead;
  if not found then return; end if;
  for v_expired in select * from expire_overdue(v_now, :EXPIRED_PER_CLAIM_MAX) loop
    what := 'expired';
    tenant := v_expired.tenant;
    agent := v_expired.agent;
    lane := v_expired.lane;
    return next;
  end loop;
  if settle_moves(v_now, :RELEASED_MAX) then
    return query select 'settled', null::bigint, (null::started_task).*;
  end if;
  select n.id, n.lane into v_queue, v_lane
    from line n
    join lane l on l.name = n.lane
    join tenant_line t on t.tenant = n.tenant and t.lane = n.lane
   where :ALONE_FOR_NODE and n.lane = any (p_lanes) and not t.disabled
     and (l.total is null or l.inflight < l.total)
     and (t.max_inflight is null or t.max_inflight > (select sum(s.inflight) from tenant_line s where s.tenant = t.tenant))
     and coalesce(:AGENT_LIMIT, 1) > 0
   order by n.last_served, n.id limit 1;
  if found then
    v_token := take_event_numbers(1);
    v_seqs := start_attempts(v_now, p_node, array[v_queue], array[v_token], null, 'running', true);
    return query select 'running', v_token, :STARTED_ALONE from task t where t.seq = any (v_seqs);
  end if;
  :PREEMPT
end $$;

-- Whether a limit holds back tasks that wait in one of these agent queues, or beside them in their lanes.
create function is_limited(p_queues bigint[]) returns boolean language plpgsql stable as $$
#variable_conflict use_column
begin
  return exists (
    select 1 from line n
      join lane l on l.name = n.lane
      join tenant_line t on t.tenant = n.tenant and t.lane = n.lane
     where n.id = any (p_queues)
       and (l.inflight >= l.total or (n.ready > 0 and n.room = 0) or n.agent_max is not null or n.shared
            or t.max_inflight is not null or (l.second_tenant and t.inflight >= t.lane_max)));
end $$;

-- Ends the attempts that this node still holds; attempts that it lost change nothing. The caller records what this moves
-- and frees in agent queues.
create function finish_held_tasks(
  p_now bigint, p_node text, p_seqs bigint[], p_tokens bigint[], p_results text[], p_more json,
  out lost bigint[], out moved queue_delta[], out freed bigint[]) language plpgsql as $$
#variable_conflict use_column
declare
:ENDING_VARIABLES
begin
:END_HELD_ATTEMPTS
  moved := v_deltas;
  freed := v_freed;
  if cardinality(p_tokens) > coalesce(cardinality(v_tokens), 0) then
    lost := array(select token from unnest(p_tokens) u(token) where v_tokens is null or token <> all (v_tokens));
  end if;
end $$;

-- Attempts that end while they are assigned have begun, unless their tasks go back to the queue.
create function begin_ending(p_now bigint, p_node text, p_seqs bigint[], p_tokens bigint[], p_more json) returns void
language plpgsql as $$
#variable_conflict use_column
declare
  v_seqs bigint[];
  v_tokens bigint[];
begin
  select array_agg(f.seq order by f.n), array_agg(f.token order by f.n) into v_seqs, v_tokens
    from unnest(p_seqs, p_tokens) with ordinality f(seq, token, n)
    left join json_to_recordset(p_more) as m(n bigint, state text) on m.n = f.n
   where m.state is distinct from 'queued';
  perform begin_attempts(p_now, p_node, v_seqs, v_tokens, null);
end $$;

-- Stores the progress of running attempts that still hold their lease.
create function write_progress(p_now bigint, p_node text, p_progress json) returns void language plpgsql as $$
#variable_conflict use_column
declare
  v_seqs bigint[];
  v_tenants text[];
  v_data text[];
begin
  select array_agg(p.seq order by p.n), array_agg(n.tenant order by p.n),
         array_agg('{"attempt":' || l.attempt || ',"progress":' || p.progress || '}' order by p.n)
    into v_seqs, v_tenants, v_data
    from json_to_recordset(p_progress) as p(n bigint, seq bigint, token bigint, progress text)
    join lease l on l.task_seq = p.seq and l.token = p.token and l.node = p_node
    join line n on n.id = l.line;
  if v_seqs is null then return; end if;
  perform append_events(take_event_numbers(cardinality(v_seqs)), p_now,
               array_fill('task.progress'::text, array[cardinality(v_seqs)]), v_tenants, v_seqs, v_data);
end $$;
