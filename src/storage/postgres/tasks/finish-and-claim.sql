-- An assigned attempt that has begun: what its task.started says, and when in the log; see BegunAttempt. report: its position among
-- those that nodes report as begun; null: it is not reported.
create type begun_attempt as (task_seq bigint, token bigint, tenant text, data text, wave integer, report bigint);

-- Ends attempts and starts others, for one node or for several at once. p_end_nodes: the node of each end. p_claim_nodes:
-- the node of each claim; claims in the same lane are next to each other. p_max: how many tasks to start in all lanes; null: no
-- limit. p_seqs, p_tokens, p_results: attempts that have ended; p_more: other values of some of them, by token. p_each,
-- p_left: for each claim, what tenants may take of its slots; see tenant-shares.ts. p_others: whether there are other nodes.
-- lost: tokens of attempts that their node no longer held. seqs, tokens, nodes: the started tasks. settled: another task may
-- be able to start, or has ended. has_freed: a limit held tasks back, so other nodes may be able to start tasks now, in any lane;
-- freed_lanes: in these lanes.
-- p_begun_nodes, p_begun, p_begun_tokens, p_begun_at, p_begun_waves: assigned attempts that have begun. p_waves: the waves of
-- the ends. p_progress: what attempts that have begun report. p_states: what the tasks of each claim
-- are claimed as; null: running. p_ahead: how many more each claim takes ahead; null: none. critical_waits: lanes of such claims
-- in which a critical task lacks only a slot. states: of the started tasks, running or assigned.
create function finish_and_claim(
  p_now bigint, p_end_nodes text[], p_seqs bigint[], p_tokens bigint[], p_results text[], p_more json,
  p_claim_nodes text[], p_lanes text[], p_limits integer[], p_each integer[], p_left text[], p_max integer, p_others boolean,
  p_begun_nodes text[], p_begun bigint[], p_begun_tokens bigint[], p_begun_at bigint[],
  p_begun_waves integer[], p_waves integer[], p_progress json, p_states text[], p_ahead integer[],
  out lost bigint[], out seqs bigint[], out tokens bigint[], out nodes text[], out states text[], out critical_waits text[],
  out expired json, out settled boolean,
  out has_freed boolean, out freed_lanes text[])
language plpgsql as $$
#variable_conflict use_column
declare
  v_claimable integer := p_max;
  v_moved queue_delta[];
  v_freed bigint[];
  v_claimed record;
  v_ended boolean;
  v_contested boolean := exists (select 1 from key_hold where contested);
  v_together boolean := false;
  v_one_lane boolean;
  v_slots text[];
  v_last integer;
  v_left integer;
  v_passed boolean;
  v_started boolean := false;
  v_ahead integer;
  v_begun begun_attempt[];
  v_reports bigint[];
  v_reported_at bigint[];
  v_everywhere boolean;
  v_limited_lanes text[];
  v_full_lanes text[];
  v_recordable boolean;
begin
  settled := false;
  has_freed := false;
  if p_begun is not null then
    v_begun := begin_attempts(p_now, p_begun_nodes, p_begun, p_begun_tokens, p_begun_at, p_begun_waves, p_tokens);
    select reports, reported_at into v_reports, v_reported_at from reports_of(p_tokens, p_begun_tokens, p_begun_at);
  end if;
  if cardinality(p_seqs) > 0 then
    if p_more is not null then
      v_begun := v_begun || begin_ending(p_end_nodes, p_seqs, p_tokens, p_more, v_reports, p_waves);
    end if;
    select f.lost, f.moved, f.freed into lost, v_moved, v_freed
      from finish_held_tasks(p_now, p_end_nodes, p_seqs, p_tokens, p_results, p_more, v_reports, v_reported_at, v_begun, p_waves,
                             p_progress) f;
  end if;
  v_ended := v_moved is not null or v_freed is not null;
  if v_begun is not null and not v_ended then
    perform append_in_waves(p_now, v_begun, p_progress, '{}', '{}', '{}', '{}', '{}', false);
  end if;
  if v_ended then
    select everywhere, lanes, full_lanes, recordable into v_everywhere, v_limited_lanes, v_full_lanes, v_recordable
      from limits_on(v_freed || array(select line from unnest(v_moved)), p_lanes[1]);
    has_freed := p_others and (v_contested or v_everywhere);
  end if;
  -- Claims of several nodes in a lane become one claim, unless it matters which node gets which task.
  if not v_contested and p_max is null and p_claim_nodes[1] <> any (p_claim_nodes) then
    v_together := not exists (select 1 from lane where name = any (p_lanes) and second_tenant)
                  and not exists (select 1 from unnest(p_lanes) p(lane) cross join lateral (
                        select 1 from line n where n.lane = p.lane and n.startable and n.pool <> 0 limit 1) l);
  end if;
  v_one_lane := (v_together or cardinality(p_lanes) = 1) and p_lanes[1] = all (p_lanes);
  -- A busy node frees and fills the same agent queues: then both are recorded together.
  if v_moved is not null
     or (v_freed is not null and (v_contested or not v_one_lane or not v_recordable)) then
    perform apply_deltas(v_moved || freed_slots(v_freed));
    v_freed := null;
  end if;
  if cardinality(p_lanes) > 0 then
    expired := (select json_agg(e) from expire_overdue(p_now, :EXPIRED_PER_CLAIM_MAX) e);
  end if;
  if exists (select 1 from release) or :SESSIONS_DEFERRED or :BATCHES_DEFERRED or :KEYS_DEFERRED then
    settled := settle_moves(p_now, :RELEASED_MAX);
    v_contested := exists (select 1 from key_hold where contested);
    if v_contested then v_together := false; end if;
    -- A task may go ahead of fairness now.
    if v_freed is not null and (v_contested or not (select recordable from limits_on(v_freed, p_lanes[1]))) then
      perform apply_deltas(freed_slots(v_freed));
      v_freed := null;
    end if;
  end if;
  for i in 1 .. cardinality(p_lanes) loop
    continue when i <= v_last;
    v_slots := p_claim_nodes[i:i];
    v_left := p_limits[i];
    v_last := i;
    while v_together and p_lanes[v_last + 1] = p_lanes[i] and p_states[v_last + 1] is not distinct from p_states[i] loop
      v_last := v_last + 1;
    end loop;
    if v_last > i then
      v_slots := in_turn(p_claim_nodes[i:v_last], p_limits[i:v_last]);
      v_left := coalesce(cardinality(v_slots), 0);
    end if;
    v_left := least(v_left, v_claimable);
    -- While all slots are busy no claim leaves one free, so keys are also passed on whenever an attempt ends.
    if v_contested and v_ended and v_left > 0 then
      perform pass_keys_on(p_now, p_lanes[i], :KEYS_LOOKED_AT_AFTER_END, p_each[i], p_left[i]::jsonb);
    end if;
    v_passed := false;
    v_ahead := p_ahead[i];
    if v_last > i then
      v_slots := v_slots || in_turn(p_claim_nodes[i:v_last], p_ahead[i:v_last]);
      v_ahead := (select sum(a) from unnest(p_ahead[i:v_last]) u(a));
    end if;
    loop
      -- A separate statement: the next one would not see leases that are written while it runs. While keys are passed on, nothing
      -- is claimed ahead.
      select * into v_claimed
        from claim_tasks(p_now, v_slots, p_lanes[i], v_left, case when not v_contested and v_ahead is not null then least(v_ahead, v_claimable - v_left) end,
                         v_freed, p_each[i], p_left[i], coalesce(p_states[i], 'running')) c;
      v_freed := null;
      seqs := seqs || v_claimed.seqs;
      tokens := tokens || v_claimed.tokens;
      nodes := nodes || v_claimed.nodes;
      states := states || v_claimed.states;
      v_claimable := v_claimable - coalesce(cardinality(v_claimed.seqs), 0);
      exit when not v_contested or (v_passed and v_claimed.seqs is null);
      v_started := v_started or v_claimed.seqs is not null;
      v_left := v_left - coalesce(cardinality(v_claimed.seqs), 0);
      if p_each[i] is not null then p_left[i] := slots_after(p_each[i], p_left[i]::jsonb, v_claimed.seqs); end if;
      v_passed := v_left > 0 and pass_keys_on(p_now, p_lanes[i], :KEYS_LOOKED_AT_KEYS, p_each[i], p_left[i]::jsonb);
      exit when not v_passed;
    end loop;
    if v_contested and v_ahead is not null then
      select * into v_claimed
        from claim_tasks(p_now, v_slots, p_lanes[i], 0, least(v_ahead, v_claimable), null, p_each[i], p_left[i], 'running') c;
      seqs := seqs || v_claimed.seqs;
      tokens := tokens || v_claimed.tokens;
      nodes := nodes || v_claimed.nodes;
      states := states || v_claimed.states;
      v_claimable := v_claimable - coalesce(cardinality(v_claimed.seqs), 0);
      v_started := v_started or v_claimed.seqs is not null;
    end if;
    if v_claimed.critical_waits then critical_waits := critical_waits || p_lanes[i]; end if;
  end loop;
  -- A started task may block the holder of a key. Another task could take the key in a lane that this call has already
  -- claimed from.
  settled := settled or v_started;
  if p_others and v_ended and not has_freed then
    freed_lanes := v_limited_lanes;
    -- A lane that is full again has no slot for others.
    if v_full_lanes is not null then
      freed_lanes := (select array_agg(name) from lane where name = any (v_limited_lanes)
                                                          or (name = any (v_full_lanes) and inflight < total));
    end if;
  end if;
  :PREEMPT_AT_P_NOW
end $$;

-- The nodes of these claims, each as often as it has slots, in turn: so no node gets all tasks when there are few.
create function in_turn(p_nodes text[], p_slots integer[]) returns text[] language plpgsql immutable as $$
begin
  return (
    select array_agg(c.node order by s.n, c.ordinal)
      from unnest(p_nodes, p_slots) with ordinality c(node, slots, ordinal)
     cross join lateral generate_series(1, c.slots) s(n));
end $$;

-- Inserts tasks, and claims for the free slots of a node in the same transaction. result: see exchange_result; null: the node is
-- not alive. started: the claimed tasks.
create function insert_and_claim(
  p_now bigint, p_forms json, p_form_of integer[], p_ids text[], p_specs text, p_agent_positions integer[], p_batches json,
  p_max_queue bigint, p_max_total bigint, p_max_agent bigint,
  p_node text, p_lanes text[], p_limits integer[], p_each integer[], p_left text[], p_others boolean,
  out first_seq bigint, out created_at bigint, out forms json, out "each" json, out result json, out started json)
language plpgsql as $$
#variable_conflict use_column
declare
  v_now bigint := take_write_lock(p_now);
  v_alive boolean := exists (select 1 from node where id = p_node and not dead);
  v_token bigint;
  v_done record;
begin
  if v_alive and cardinality(p_ids) = 1 then
    select t.first_seq, t.forms, t.token into first_seq, forms, v_token
      from insert_ready_task(v_now, p_forms, p_ids[1], p_specs, p_max_queue, p_max_total, p_max_agent, p_node, p_lanes, p_limits, p_each,
                             p_left) t;
  end if;
  created_at := v_now;
  if first_seq is null then
    select i.first_seq, i.forms, i."each" into first_seq, forms, "each"
      from insert_tasks(v_now, p_forms, p_form_of, p_ids, p_specs, p_agent_positions, p_batches, p_max_queue, p_max_total, p_max_agent) i;
  end if;
  if not v_alive then return; end if;
  if v_token is not null then
    select array[first_seq] as seqs, array[v_token] as tokens, '{running}'::text[] as states, null::json as expired, false as settled
      into v_done;
  else
    select * into v_done
      from finish_and_claim(
             v_now, '{}', '{}', '{}', '{}', null, array_fill(p_node, array[cardinality(p_lanes)]), p_lanes, p_limits, p_each, p_left, null,
             p_others, null, null, null, null, null, null, null, null, null);
  end if;
  result := exchange_result(v_now, null, v_done.seqs, v_done.tokens, v_done.states, null, v_done.expired, v_done.settled, false, null);
  if v_done.seqs is not null then
    started := (select json_agg(s order by s.token) from (:STARTED_TASKS) s);
  end if;
end $$;

-- For a node that runs nothing else: claims one task that runs alone, from the agent queue of such tasks that was served
-- longest ago.
create function claim_alone(p_now bigint, p_node text, p_lanes text[]) returns json language plpgsql as $$
#variable_conflict use_column
declare
  v_now bigint := take_write_lock(p_now);
  v_expired json;
  v_settled boolean;
  v_queue bigint;
  v_token bigint;
  v_seqs bigint[];
begin
  perform 1 from node where id = p_node and not dead;
  if not found then return exchange_result(v_now, null, null, null, null, null, null, false, false, null); end if;
  v_expired := (select json_agg(e) from expire_overdue(v_now, :EXPIRED_PER_CLAIM_MAX) e);
  v_settled := settle_moves(v_now, :RELEASED_MAX);
  select n.id into v_queue
    from line n
    join lane l on l.name = n.lane
    join tenant_line t on t.tenant = n.tenant and t.lane = n.lane
   where :ALONE_FOR_NODE and n.lane = any (p_lanes) and not t.disabled
     and (l.total is null or l.inflight < l.total) and (t.inflight >= t.lane_max) is not true
     and (t.max_inflight is null or t.max_inflight > (select sum(s.inflight) from tenant_line s where s.tenant = t.tenant))
     and coalesce(:AGENT_LIMIT, 1) > 0
   order by n.last_served, n.id limit 1;
  if found then
    v_token := take_event_numbers(1);
    v_seqs := start_attempts(v_now, array[p_node], v_token, array[v_queue], array[v_token], null, 'running', true);
  end if;
  :PREEMPT
  return exchange_result(v_now, null, v_seqs, array[v_token], array['running'], null, v_expired, v_settled, false, null);
end $$;

-- Whether a limit holds back tasks that wait in one of these agent queues, or beside them in their lanes.
create function is_limited(p_queues bigint[]) returns boolean language plpgsql stable as $$
begin
  return (select everywhere or lanes is not null or full_lanes is not null from limits_on(p_queues, null));
end $$;

-- The limits that hold back tasks that wait in one of these agent queues, or beside them. everywhere: limits over all lanes; lanes:
-- those in which an agent or a tenant is at its limit; full_lanes: those that are at their total. recordable: whether slots that
-- these queues free can be recorded together with the starts in lane p_lane: all of them are in this lane, and only fairness
-- decides.
create function limits_on(
  p_queues bigint[], p_lane text, out everywhere boolean, out lanes text[], out full_lanes text[], out recordable boolean)
language plpgsql stable as $$
#variable_conflict use_column
begin
  select bool_or(o.everywhere), array_agg(o.lane) filter (where o.limited), array_agg(o.lane) filter (where o.is_full),
         bool_and(o.recordable) and not exists (select 1 from line where lane = p_lane and startable and ahead and pool = 0)
    into everywhere, lanes, full_lanes, recordable
    from (select n.lane, bool_or(n.agent_max is not null or n.shared or t.max_inflight is not null) as everywhere,
                 bool_or((n.ready > 0 and n.room = 0) or (l.second_tenant and (t.inflight >= t.lane_max) is true)) as limited,
                 bool_or((l.inflight >= l.total) is true) as is_full,
                 bool_and(n.lane = p_lane and not (n.ahead or n.agent_max is not null or n.shared or n.standing <> 0 or n.pool <> 0))
                   as recordable
            from line n
            join lane l on l.name = n.lane
           cross join lateral (
             select max_inflight, inflight, lane_max from tenant_line where lane = n.lane and tenant = n.tenant offset 0) t
           where n.id = any (p_queues) group by n.lane) o;
end $$;

-- For each of these ends: which of p_begun reports that it began, and when; null: none does. A full join, because the planner
-- expects few rows and would compare each with each.
create function reports_of(
  p_tokens bigint[], p_begun bigint[], p_begun_at bigint[], out reports bigint[], out reported_at bigint[])
language plpgsql immutable as $$
begin
  select array_agg(x.report order by x.n), array_agg(x.at order by x.n) into reports, reported_at
    from (select e.n, b.n as report, b.at
            from unnest(p_tokens) with ordinality e(token, n)
            full join unnest(p_begun, p_begun_at) with ordinality b(token, at, n) on b.token = e.token offset 0) x
   where x.n is not null;
end $$;

-- Ends the attempts that these nodes still hold; attempts that they lost change nothing. p_reports, p_reported_at: see reports_of;
-- null: nothing is reported. p_begun: attempts that have begun; if all attempts that end are done, those of them that were assigned
-- are found here, else they are among p_begun (see begin_ending). The caller records what this moves and frees in agent queues.
create function finish_held_tasks(
  p_now bigint, p_nodes text[], p_seqs bigint[], p_tokens bigint[], p_results text[], p_more json, p_reports bigint[],
  p_reported_at bigint[], p_begun begun_attempt[], p_waves integer[], p_progress json,
  out lost bigint[], out moved queue_delta[], out freed bigint[]) language plpgsql as $$
#variable_conflict use_column
declare
:ENDING_VARIABLES
  v_begun begun_attempt[] := p_begun;
  v_assigned begun_attempt[];
begin
  if p_more is null then
:END_DONE_ATTEMPTS
  else
:END_HELD_ATTEMPTS
  end if;
  moved := v_deltas;
  freed := v_freed;
  if cardinality(p_tokens) > coalesce(cardinality(v_tokens), 0) then
    lost := array(select token from unnest(p_tokens) u(token) where v_tokens is null or token <> all (v_tokens));
  end if;
end $$;

-- Attempts that end while they are assigned have begun, unless their tasks go back to the queue and the node did not report
-- that they began. Their leases are about to be deleted, so they are not written.
create function begin_ending(
  p_nodes text[], p_seqs bigint[], p_tokens bigint[], p_more json, p_reports bigint[], p_waves integer[])
returns begun_attempt[] language plpgsql stable as $$
#variable_conflict use_column
begin
  return (
    select array_agg(row(f.seq, f.token, n.tenant, '"attempt":' || l.attempt, coalesce(f.wave, 0), f.report)::begun_attempt
                     order by f.n)
      from unnest(p_nodes, p_seqs, p_tokens, p_waves, p_reports) with ordinality f(node, seq, token, wave, report, n)
     cross join lateral (
       select line, attempt from lease where task_seq = f.seq and token = f.token and node = f.node and state = 'assigned' offset 0) l
     cross join lateral (select tenant from line where id = l.line offset 0) n
     where p_more is null
        or f.report is not null
        or not exists (select 1 from json_to_recordset(p_more) as m(token bigint, state text)
                        where m.token = f.token and m.state = 'queued'));
end $$;

-- Assigned attempts that these nodes still hold and that have begun become running. p_started: when; null: when they were
-- claimed. Those among p_ending end at once; see begin_ending. The caller appends the events.
create function begin_attempts(
  p_now bigint, p_nodes text[], p_seqs bigint[], p_tokens bigint[], p_started bigint[], p_waves integer[], p_ending bigint[])
returns begun_attempt[] language plpgsql as $$
#variable_conflict use_column
declare
  v_begun begun_attempt[];
  v_lanes text[];
begin
  with given as (
    select b.n, b.node, b.seq, b.token, b.started, coalesce(b.wave, 0) as wave, t.tenant, t.priority,
           t.priority > 0 and t.preemptions_left > 0 as gives_way
      -- A full join, as in reports_of.
      from (select b.*, e.token as ending
              from unnest(p_nodes, p_seqs, p_tokens, p_started, p_waves) with ordinality b(node, seq, token, started, wave, n)
              full join unnest(p_ending) e(token) on e.token = b.token offset 0) b
     cross join lateral (select tenant, priority, preemptions_left from task where seq = b.seq offset 0) t
     where b.ending is null),
  begun as (
    update lease l
       set state = 'running',
           started_at = greatest(least(coalesce(g.started, l.started_at), p_now), l.started_at),
           tenant = case when g.gives_way then g.tenant end,
           priority = case when g.gives_way then g.priority end
      from given g
     where l.task_seq = g.seq and l.token = g.token and l.node = g.node and l.state = 'assigned'
    returning g.n, l.task_seq, l.token, g.tenant, l.attempt, g.wave, l.lane, g.gives_way)
  select array_agg(row(task_seq, token, tenant, '"attempt":' || attempt, wave, n)::begun_attempt order by n),
         array_agg(distinct lane) filter (where gives_way)
    into v_begun, v_lanes from begun;
  -- A critical task that waits may pre-empt them from now on.
  if v_lanes is not null then perform defer_work('lanes_to_recheck', v_lanes); end if;
  return v_begun;
end $$;

-- Appends the events of attempts that have begun and of ends, in the order of their waves. Starts of a wave are in the order of their
-- reports, whether or not the attempt ends at once.
create function append_in_waves(
  p_now bigint, p_begun begun_attempt[], p_progress json, p_waves integer[], p_types text[], p_tenants text[], p_seqs bigint[], p_data text[],
  p_calls_back boolean)
returns void language plpgsql as $$
#variable_conflict use_column
declare
  v_part record;
  v_first bigint;
  v_alike boolean;
begin
  if p_progress is null and not p_calls_back then
    v_first := take_event_numbers(coalesce(cardinality(p_begun), 0) + cardinality(p_seqs));
    if coalesce(p_tenants[1] = all (p_tenants), true) then
      -- Usually the events of a wave are alike: each wave is a row of the log then.
      with part as materialized (
        select x.wave, x.step, min(x.type) as type, min(x.tenant) as tenant, min(x.data) as data, count(*)::integer as count,
               array_agg(x.seq order by x.report, x.n) as seqs,
               min(x.type) = max(x.type) and min(x.tenant) = max(x.tenant)
                 and (count(x.data) = 0 or (count(x.data) = count(*) and min(x.data) = max(x.data))) as alike
          from (:EVENTS_IN_WAVES) x
         group by x.wave, x.step),
      appended as (
        insert into event (last_seq, count, type, at, tenant, task_seqs, data)
        select v_first - 1 + sum(count) over (order by wave, step), count, type, p_now, tenant, seqs, data
          from part where (select bool_and(alike) from part))
      select bool_and(alike) into v_alike from part;
      if v_alike then return; end if;
    end if;
    -- Consecutive events of a wave that differ only in the task share a row.
    insert into event (last_seq, count, type, at, tenant, task_seqs, data)
    select v_first - 1 + max(ordinal), count(*), min(type), p_now, min(tenant), array_agg(seq order by ordinal), min(data)
      from (select *, count(*) filter (where differs) over (order by ordinal) as run
              from (select x.*, row_number() over w as ordinal,
                           lag(x.step) over w is distinct from x.step or lag(x.wave) over w is distinct from x.wave
                             or lag(x.type) over w is distinct from x.type or lag(x.tenant) over w is distinct from x.tenant
                             or lag(x.data) over w is distinct from x.data as differs
                      from (:EVENTS_IN_WAVES) x
                    window w as (order by x.wave, x.step, x.report, x.n)) o) r
     group by run;
    return;
  end if;
  for v_part in
    select x.wave, x.step, array_agg(x.type order by x.report, x.n) as types, array_agg(x.tenant order by x.report, x.n) as tenants,
           array_agg(x.seq order by x.report, x.n) as seqs, array_agg(x.data order by x.report, x.n) as data
      from (select b.wave, 1 as step, 'task.started' as type, b.tenant, b.task_seq as seq, '{' || b.data || '}' as data, b.report, b.n
              from unnest(p_begun) with ordinality b(task_seq, token, tenant, data, wave, report, n)
            union all
            (select distinct on (b.n) b.wave, 2, 'task.progress', b.tenant, b.task_seq,
                    '{' || b.data || ',"progress":' || p.progress || '}', b.report, b.n
               from unnest(p_begun) with ordinality b(task_seq, token, tenant, data, wave, report, n)
               join json_to_recordset(p_progress) as p(n bigint, seq bigint, token bigint, progress text)
                 on p.seq = b.task_seq and p.token = b.token
              order by b.n, p.n desc)
            union all
            select coalesce(e.wave, 0), 3, e.type, e.tenant, e.seq, e.data, null, e.n
              from unnest(p_waves, p_types, p_tenants, p_seqs, p_data) with ordinality e(wave, type, tenant, seq, data, n)) x
     group by x.wave, x.step order by x.wave, x.step
  loop
    v_first := take_event_numbers(cardinality(v_part.seqs));
    perform append_events(v_first, p_now, v_part.types, v_part.tenants, v_part.seqs, v_part.data);
    if v_part.step = 3 and p_calls_back then perform add_deliveries(p_now, v_first, v_part.seqs); end if;
  end loop;
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
   cross join lateral (
     select line, attempt from lease
      where task_seq = p.seq and token = p.token and node = p_node and state = 'running' offset 0) l
   cross join lateral (select tenant from line where id = l.line offset 0) n;
  if v_seqs is null then return; end if;
  perform append_events(take_event_numbers(cardinality(v_seqs)), p_now,
               array_fill('task.progress'::text, array[cardinality(v_seqs)]), v_tenants, v_seqs, v_data);
end $$;

-- Appends the starts of attempts that end in the same transaction: their leases are gone.
create function append_starts(p_now bigint, p_seqs bigint[]) returns void language plpgsql as $$
#variable_conflict use_column
declare
  v_tenants text[];
  v_data text[];
begin
  select array_agg(t.tenant order by u.n), array_agg('{"attempt":' || t.executions + 1 || '}' order by u.n)
    into v_tenants, v_data
    from unnest(p_seqs) with ordinality u(seq, n)
   cross join lateral (select tenant, executions from task where seq = u.seq offset 0) t;
  perform append_events(take_event_numbers(cardinality(p_seqs)), p_now,
               array_fill('task.started'::text, array[cardinality(p_seqs)]), v_tenants, p_seqs, v_data);
end $$;

-- What a node learns of an exchange. It reads the started tasks by themselves, after the write lock is free. p_served: the exchange
-- of another node did this one; p_shared_events: this one did those of others, and the step has appended events.
create function exchange_result(
  p_now bigint, p_lost bigint[], p_seqs bigint[], p_tokens bigint[], p_states text[], p_critical_waits text[],
  p_expired json, p_settled boolean, p_freed boolean, p_freed_lanes text[], p_served boolean default false,
  p_shared_events boolean default false)
returns json language plpgsql immutable as $$
begin
  return json_build_object('at', p_now, 'lost', p_lost, 'seqs', p_seqs, 'tokens', p_tokens, 'states', p_states,
                           'criticalWaits', p_critical_waits, 'expired', p_expired,
                           'settled', p_settled, 'freed', p_freed, 'freedLanes', p_freed_lanes,
                           'served', p_served, 'sharedEvents', p_shared_events);
end $$;
