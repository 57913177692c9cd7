-- Claims tasks of a lane: p_limit for free slots, in state p_state, and then p_ahead for slots that are not free yet, assigned, and
-- only such that may wait on a node; null: none. p_slots: the node of each start; a single entry: of all starts. p_freed: agent
-- queues of freed slots that are not recorded yet; see limits_on. p_each, p_left: what tenants may take of the slots; see
-- tenant-shares.ts. critical_waits: nothing was claimed ahead, because a critical task lacks only a slot.
create function claim_tasks(
  p_now bigint, p_slots text[], p_lane text, p_limit integer, p_ahead integer, p_freed bigint[], p_each integer, p_left text,
  p_state text, out seqs bigint[], out tokens bigint[], out nodes text[], out states text[], out critical_waits boolean)
language plpgsql as $$
#variable_conflict use_column
declare
  v_lane lane;
  v_pooled boolean := exists (select 1 from line where lane = p_lane and startable and pool <> 0);
  v_urgent boolean;
  v_ahead integer := coalesce(p_ahead, 0);
  v_left integer;
  v_own tenant_line;
  v_turns bigint[];
  v_after_criticals boolean;
  v_queues bigint[];
  v_each integer;
  v_left_of jsonb;
  v_first bigint;
  v_more record;
begin
  select * into v_lane from lane where name = p_lane;
  if not found then raise exception 'lane "%" is not configured', p_lane; end if;
  if v_lane.second_tenant then
    v_each := p_each;
    v_left_of := p_left;
  end if;
  if v_pooled and p_freed is not null then
    perform apply_deltas(freed_slots(p_freed));
    p_freed := null;
  end if;
  if p_ahead is not null then
    v_urgent := exists (select 1 from tenant_line t where t.lane = p_lane and t.startable and t.urgent_lines > 0);
    if p_limit > 0 and (v_pooled or v_urgent or v_lane.strategy <> 'fair-fifo') then
      -- Not only fairness decides, so what is claimed ahead depends on what has started.
      select c.seqs, c.tokens, c.nodes, c.states into seqs, tokens, nodes, states
        from claim_tasks(p_now, p_slots, p_lane, p_limit, null, p_freed, p_each, p_left, p_state) c;
      select * into v_more
        from claim_tasks(p_now, case when cardinality(p_slots) = 1 then p_slots else p_slots[p_limit + 1:] end, p_lane, 0, p_ahead, null,
                         p_each, case when p_each is not null then slots_after(p_each, p_left::jsonb, seqs)::text end, p_state) c;
      seqs := seqs || v_more.seqs;
      tokens := tokens || v_more.tokens;
      nodes := nodes || v_more.nodes;
      states := states || v_more.states;
      critical_waits := v_more.critical_waits;
      return;
    end if;
    critical_waits := v_urgent and v_lane.strategy = 'fair-fifo' and exists (
      select 1 from tenant_line t where t.lane = p_lane and t.startable and t.urgent_lines > 0 and :TENANT_ROOM > 0);
    if critical_waits or v_lane.strategy <> 'fair-fifo' then v_ahead := 0; end if;
  end if;
  if v_pooled then
    select c.seqs, c.first_token into seqs, v_first
      from claim_of_pools(p_now, p_slots[1], p_lane, p_limit + v_ahead, v_each, v_left_of, case when v_ahead > 0 then 'ahead' else p_state end) c;
    p_slots := p_slots[:1];
    v_left := 0;
  else
    v_left := least(p_limit + v_ahead, v_lane.total - v_lane.inflight + coalesce(cardinality(p_freed), 0));
  end if;
  if v_left > 0 and v_lane.tenants = 1 then
    -- With a single tenant, only the room of its agent queues matters.
    select * into v_own from tenant_line where lane = p_lane;
    if v_own.disabled then
      v_left := 0;
    elsif v_own.max_inflight is not null then
      v_left := least(v_left, v_own.max_inflight + coalesce(cardinality(p_freed), 0)
                                - (select sum(inflight) from tenant_line where tenant = v_own.tenant));
    end if;
    if v_lane.second_tenant then
      v_left := least(v_left, v_own.lane_max + coalesce(cardinality(p_freed), 0) - v_own.inflight,
                      coalesce((v_left_of ->> v_own.tenant)::integer, v_each));
    end if;
    v_urgent := v_own.urgent_lines > 0;
    v_turns := case when v_urgent and v_left > 0 then array_fill(v_own.id, array[least(v_left, v_own.supply)::integer])
                    else array[v_own.id] end;
    v_queues := case when v_left > 0 and not v_urgent then choose_queues_of_tenant(v_lane, v_own.tenant, v_left, p_freed) end;
    v_after_criticals := v_own.ahead_streak <> 0;
  elsif v_left > 0 then
    select turns, urgent, after_criticals into v_turns, v_urgent, v_after_criticals from share_out(v_lane, v_left, p_freed, v_each, v_left_of);
    v_queues := case when cardinality(v_turns) > 0 and not v_urgent then choose_queues_fairly(v_lane, v_turns, p_freed) end;
  end if;
  if v_left > 0 and v_urgent and cardinality(v_turns) > 0 then
    v_first := take_event_numbers(cardinality(v_turns));
    seqs := start_in_turns(p_now, p_slots, v_lane, v_turns, v_first, p_state);
  elsif cardinality(v_queues) > 0 then
    v_first := take_event_numbers(cardinality(v_queues));
    seqs := start_attempts(
      p_now, p_slots, v_first, v_queues, array(select generate_series(v_first, v_first + cardinality(v_queues) - 1)), p_freed, p_state,
      true, greatest(cardinality(v_queues) - p_limit, 0));
    if v_after_criticals then
      update tenant_line set ahead_streak = 0 where id = any (v_turns) and ahead_streak <> 0;
    end if;
  elsif p_freed is not null then
    perform apply_deltas(freed_slots(p_freed));
  end if;
  if seqs is null then return; end if;
  tokens := array(select generate_series(v_first, v_first + cardinality(seqs) - 1));
  nodes := case when cardinality(p_slots) = 1 then array_fill(p_slots[1], array[cardinality(seqs)]) else p_slots[:cardinality(seqs)] end;
  states := array_fill(p_state, array[least(cardinality(seqs), p_limit)])
            || array_fill('assigned'::text, array[greatest(cardinality(seqs) - p_limit, 0)]);
end $$;

-- The same if not every node can execute everything, or agents have several queues in this lane: one task after the other.
create function claim_of_pools(
  p_now bigint, p_node text, p_lane text, p_limit integer, p_each integer, p_left jsonb, p_as text,
  out seqs bigint[], out first_token bigint)
language plpgsql as $$
#variable_conflict use_column
declare
  v_pools integer[] := array(
    select p.id from pool p join node n on n.profile = any (p.profiles) where n.id = p_node);
  v_lane lane;
  v_own tenant_line;
  v_queue bigint;
  v_token bigint;
  v_started bigint[];
begin
  while coalesce(cardinality(seqs), 0) < p_limit loop
    select * into v_lane from lane where name = p_lane;
    exit when v_lane.inflight >= v_lane.total;
    select t.* into v_own from tenant_line t
     where t.lane = p_lane and t.startable and least(:TENANT_ROOM, :LEFT_FOR_TENANT) > 0
       and (exists (select 1 from line n where n.lane = p_lane and n.tenant = t.tenant and n.startable and n.pool = 0)
            or exists (select 1 from unnest(v_pools) p(id) cross join lateral (
                         select 1 from line n
                          where n.lane = p_lane and n.tenant = t.tenant and n.startable and n.pool <> 0 and n.pool = p.id limit 1) l))
     order by t.owed = 0, t.inflight, t.last_served, t.id limit 1;
    exit when not found;
    v_queue := null;
    if v_lane.strategy <> 'fair-fifo' or v_own.ahead_streak < :CONSECUTIVE_CRITICAL_MAX then
      select c.id into v_queue
        from (:AHEAD_OF_POOLS) c
       order by c.head_rank, c.head_seq limit 1;
    end if;
    if v_queue is not null then
      v_own.ahead_streak := v_own.ahead_streak + (v_lane.strategy = 'fair-fifo')::integer;
    else
      v_own.ahead_streak := 0;
      select c.id into v_queue
        from (:FAIR_OF_POOLS) c
       order by c.inflight, c.last_served, c.id limit 1;
    end if;
    exit when p_as = 'ahead' and not is_head_holdable(v_queue);
    v_token := take_event_numbers(1);
    first_token := coalesce(first_token, v_token);
    v_started := start_attempts(p_now, array[p_node], v_token, array[v_queue], array[v_token], null,
                                case when p_as = 'ahead' then 'assigned' else p_as end, true);
    seqs := coalesce(seqs, '{}') || v_started;
    if p_each is not null then p_left := slots_after(p_each, p_left, v_started); end if;
    update tenant_line set ahead_streak = v_own.ahead_streak where id = v_own.id and ahead_streak <> v_own.ahead_streak;
  end loop;
end $$;

-- Starts tasks in the turns of tenants if something goes ahead of fairness. It chooses for each tenant separately, and
-- appends the events in the order of the turns, numbered from p_first on.
create function start_in_turns(
  p_now bigint, p_slots text[], p_lane lane, p_turns bigint[], p_first bigint, p_state text)
returns bigint[] language plpgsql as $$
#variable_conflict use_column
declare
  v_owner record;
  v_seqs bigint[] := '{}';
  v_tenants text[];
  v_data text[];
begin
  for v_owner in
    select u.id, array_agg(p_first + u.ordinal - 1 order by u.ordinal) as tokens
      from unnest(p_turns) with ordinality u(id, ordinal) group by u.id order by u.id
  loop
    v_seqs := v_seqs || start_tenant_tasks(p_now, p_slots, p_first, p_lane, v_owner.id, v_owner.tokens, p_state);
  end loop;
  select array_agg(l.task_seq order by l.token), array_agg(t.tenant order by l.token),
         array_agg('{"attempt":' || l.attempt || '}' order by l.token)
    into v_seqs, v_tenants, v_data
    from unnest(v_seqs) u(seq)
   cross join lateral (select task_seq, token, attempt from lease where task_seq = u.seq offset 0) l
   cross join lateral (select tenant from task where seq = u.seq offset 0) t;
  if p_state = 'running' then
    perform append_events(p_first, p_now, array_fill('task.started'::text, array[cardinality(v_seqs)]), v_tenants, v_seqs, v_data);
  end if;
  return v_seqs;
end $$;

-- Starts one task of a tenant for each token. Critical tasks go ahead of fairness, but after a number of consecutive
-- critical starts one start is fair.
create function start_tenant_tasks(
  p_now bigint, p_slots text[], p_first bigint, p_lane lane, p_owner bigint, p_tokens bigint[], p_state text)
returns bigint[] language plpgsql as $$
#variable_conflict use_column
declare
  v_fair boolean := p_lane.strategy = 'fair-fifo';
  v_own tenant_line;
  v_tokens bigint[] := p_tokens;
  v_ahead_max integer;
  v_queues bigint[];
  v_started bigint[] := '{}';
begin
  select * into v_own from tenant_line where id = p_owner;
  while cardinality(v_tokens) > 0 loop
    v_ahead_max := case when v_fair then least(cardinality(v_tokens), :CONSECUTIVE_CRITICAL_MAX - v_own.ahead_streak) else cardinality(v_tokens) end;
    v_queues := case when v_ahead_max > 0 then choose_queues_ahead(p_lane.name, v_own.tenant, v_ahead_max, v_fair) end;
    if cardinality(v_queues) > 0 then
      if v_fair then v_own.ahead_streak := v_own.ahead_streak + cardinality(v_queues); end if;
    else
      -- If nothing goes ahead, all remaining starts are fair; after the most consecutive critical starts, one is.
      v_queues := choose_queues_of_tenant(p_lane, v_own.tenant, case when v_ahead_max > 0 then cardinality(v_tokens) else 1 end, null);
      v_own.ahead_streak := 0;
    end if;
    v_started := v_started || start_attempts(
      p_now, p_slots, p_first, v_queues, v_tokens[:cardinality(v_queues)], null, p_state, false);
    v_tokens := v_tokens[cardinality(v_queues) + 1:];
  end loop;
  update tenant_line set ahead_streak = v_own.ahead_streak where id = p_owner and ahead_streak <> v_own.ahead_streak;
  return v_started;
end $$;

-- The agent queues of a tenant with the smallest (rank, seq), one entry for each task.
create function choose_queues_ahead(p_lane text, p_tenant text, p_count integer, p_critical_only boolean) returns bigint[]
language plpgsql stable as $$
begin
  return array(
    select c.id from :TASKS_AHEAD order by r.rank, r.task_seq limit p_count);
end $$;

-- The agent queues of a tenant with the fewest in flight; ties go to the one served longest ago. One entry for each start.
create function choose_queues_of_tenant(p_lane lane, p_tenant text, p_count integer, p_freed bigint[]) returns bigint[]
language plpgsql stable as $$
#variable_conflict use_column
declare
  v_ids bigint[];
  v_inflight integer[];
  v_served bigint[];
  v_room bigint[];
  v_base integer;
  v_supply bigint;
begin
  if p_freed is null then
    select array_agg(id), array_agg(inflight), array_agg(last_served), array_agg(room), min(inflight), least(sum(room), p_count)
      into v_ids, v_inflight, v_served, v_room, v_base, v_supply
      from (select n.id, n.inflight, n.last_served, n.room
              from line n where n.lane = (p_lane).name and n.tenant = p_tenant and n.startable and n.pool = 0
             order by n.inflight, n.last_served, n.id limit p_count) c;
  else
    -- The index does not contain the freed slots yet: those queues are read besides, with the room that they will have. Of a queue
    -- that comes twice, that row has the fewer in flight and the larger room.
    with freed as materialized (select line, count(*)::integer as slots from unnest(p_freed) u(line) group by line),
    candidate as (
      select n.id, n.inflight - f.slots as inflight, n.last_served, :ROOM_WHEN_FREED as room
        from freed f
       cross join lateral (select * from line where id = f.line and tenant = p_tenant offset 0) n
      union all
      (select n.id, n.inflight, n.last_served, n.room
         from line n where n.lane = (p_lane).name and n.tenant = p_tenant and n.startable and n.pool = 0
        order by n.inflight, n.last_served, n.id limit p_count + (select count(*) from freed))),
    adjusted as (
      select id, min(inflight) as inflight, last_served, max(room) as room from candidate group by id, last_served)
    select array_agg(id), array_agg(inflight), array_agg(last_served), array_agg(room), min(inflight), least(sum(room), p_count)
      into v_ids, v_inflight, v_served, v_room, v_base, v_supply
      from (select * from adjusted where room > 0 order by inflight, last_served, id limit p_count) c;
  end if;
  if p_count = 1 or v_ids is null then return v_ids; end if;
  return allot(v_ids, v_inflight, v_served, v_room, p_count, v_base, v_supply);
end $$;

-- The same for these turns of several tenants: computes at once what choosing one after the other would choose.
create function choose_queues_fairly(p_lane lane, p_turns bigint[], p_freed bigint[]) returns bigint[]
language plpgsql stable as $$
#variable_conflict use_column
declare
  v_owners bigint[];
  v_ids bigint[];
  v_inflight integer[];
  v_served bigint[];
  v_room bigint[];
  v_base integer[];
  v_span integer[];
  v_times integer := 1;
  v_queues bigint[];
begin
  with freed as materialized (
    select f.slots, n.*
      from (select line, count(*)::integer as slots from unnest(p_freed) u(line) group by line) f
     cross join lateral (select * from line where id = f.line offset 0) n),
  -- For each tenant what it starts, and how many of its queues have freed slots.
  need as materialized (
    select max(owner) as owner, tenant, max(starts) as starts, count(line) as freed
      from (select t.id as owner, t.tenant, u.starts, null::bigint as line
              from (select id, count(*)::integer as starts from unnest(p_turns) u(id) group by id) u
             cross join lateral (select id, tenant from tenant_line where id = u.id offset 0) t
            union all
            select null, tenant, null, id from freed) x
     group by tenant having max(owner) is not null),
  -- Of a queue that comes twice, the row with the freed slots has the fewer in flight and the larger room.
  candidate as (
    select need.owner, need.starts, f.id, f.inflight - f.slots as inflight, f.last_served, :ROOM_OF_FREED as room
      from freed f join need on need.tenant = f.tenant
    union all
    select need.owner, need.starts, c.*
      from need
     cross join lateral (
       select n.id, n.inflight, n.last_served, n.room
         from line n where n.lane = (p_lane).name and n.tenant = need.tenant and n.startable and n.pool = 0
        order by n.inflight, n.last_served, n.id limit need.starts + need.freed) c),
  adjusted as (
    select owner, starts, id, min(inflight) as inflight, last_served, max(room) as room
      from candidate group by owner, starts, id, last_served),
  ranked as (
    select *, row_number() over (partition by owner order by inflight, last_served, id) as n from adjusted where room > 0)
  select array_agg(owner), array_agg(id), array_agg(inflight), array_agg(last_served), array_agg(room),
         array_agg(base), array_agg(span)
    into v_owners, v_ids, v_inflight, v_served, v_room, v_base, v_span
    from (select *, min(inflight) over (partition by owner) as base,
                 (starts - 1) / (count(*) over (partition by owner))::integer + 1 as span
            from ranked where n <= starts) c;
  -- As in allot, for each tenant separately: the nth queue allotted to a tenant is for its nth turn.
  loop
    v_queues := array(
      select x.id
        from (select c.owner, c.id,
                     row_number() over (partition by c.owner order by c.inflight + s.n, s.n, c.served, c.id) as nth
                from unnest(v_owners, v_ids, v_inflight, v_served, v_room, v_base, v_span)
                       as c(owner, id, inflight, served, room, base, span)
               cross join lateral generate_series(1, least(c.room, c.base + c.span * v_times - c.inflight)) as s(n)) x
        join (select id as owner, ordinal, row_number() over (partition by id order by ordinal) as nth
                from unnest(p_turns) with ordinality u(id, ordinal)) t on t.owner = x.owner and t.nth = x.nth
       order by t.ordinal);
    if cardinality(v_queues) = cardinality(p_turns) then return v_queues; end if;
    if v_times > 100000000 then raise exception 'tenants in lane % count more than they can start', (p_lane).name; end if;
    v_times := v_times * 4;
  end loop;
end $$;

-- Starts the first tasks of these agent queues of one lane, one for each entry, in the order of the entries and with these
-- tokens, and records p_freed with it: one statement, which a busy node runs all the time. The start with token p_first is for
-- the first of p_slots. p_state: running or assigned. p_appends_events: false if the caller appends the events. p_ahead: so many of
-- the last are claimed ahead: assigned, up to the first that may not wait on a node.
create function start_attempts(
  p_now bigint, p_slots text[], p_first bigint, p_queues bigint[], p_tokens bigint[], p_freed bigint[], p_state text,
  p_appends_events boolean, p_ahead integer default 0)
returns bigint[] language plpgsql as $$
#variable_conflict use_column
declare
  v_slots integer := cardinality(p_queues) - p_ahead;
  v_found integer;
  v_seqs bigint[];
  v_tenants text[];
  v_attempts integer[];
  v_alike boolean;
  v_limited bigint[];
  v_refreshed text[];
begin
  with need as (
    select line, array_agg(ordinal order by ordinal) as ordinals from unnest(p_queues) with ordinality u(line, ordinal) group by line),
  found as materialized (
    select o.id as line, o.lane, r.entry, r.task_seq, need.ordinals[r.n] as ordinal, p_tokens[need.ordinals[r.n]] as token,
           t.executions + 1 as attempt, t.tenant, t.priority, t.session,
           (t.origin is not null)::integer as exempt,
           t.priority > 0 and t.preemptions_left > 0 and p_state = 'running' and need.ordinals[r.n] <= v_slots as gives_way,
           need.ordinals[r.n] > v_slots and not (:IS_HOLDABLE) as must_start
      from need
     cross join lateral (select id, lane, head_rank, head_seq from line where id = need.line offset 0) o
     cross join lateral (
       select ctid as entry, task_seq, row_number() over (order by rank, task_seq) as n from ready
        where line = need.line and (rank, task_seq) >= (o.head_rank, o.head_seq)
        order by rank, task_seq limit cardinality(need.ordinals)) r
     cross join lateral (
       select executions, tenant, priority, session, origin, preemptions_left, concurrency_key, retry_count, max_retries_if_lost, batch
         from task where seq = r.task_seq and resting_state = 'queued' offset 0) t),
  chosen as materialized (
    select * from found where ordinal < (select coalesce(min(ordinal) filter (where must_start), cardinality(p_queues) + 1) from found)),
  gone as (
    delete from ready where ctid = any (array(select entry from chosen))),
  held as (
    insert into lease (task_seq, token, node, line, state, attempt, started_at, session, lane, tenant, priority)
    select task_seq, token, coalesce(p_slots[(token - p_first + 1)::integer], p_slots[1]), line,
           case when ordinal <= v_slots then p_state else 'assigned' end, attempt, p_now, session,
           lane, case when gives_way then tenant end, case when gives_way then priority end from chosen),
  moved as (
    select coalesce(c.line, f.line) as line, coalesce(c.starts, 0) as starts, coalesce(c.exempt, 0) as exempt, c.served,
           coalesce(f.slots, 0) as slots
      from (select line, count(*)::integer as starts, sum(exempt)::integer as exempt, max(token) as served
              from chosen group by line) c
      full join (select line, count(*)::integer as slots from unnest(p_freed) u(line) group by line) f on f.line = c.line),
  adjusted as (
    select m.*, o.address, o.lane, o.tenant, o.room as old_room, o.startable and o.ahead as was_urgent,
           -- Queues of an agent with its own limit, or with several queues in the lane, are refreshed below.
           case when o.standing = 0 then greatest(least(o.ready - m.starts, l.per_agent - o.inflight - m.starts + m.slots), 0)
                else 0 end as room,
           h.rank, h.seq, h.rank is not null and (h.rank <= :PRIORITY_CRITICAL or l.strategy = 'priority-fifo') as ahead
      from moved m
      -- Looked up, and updated by its address: a plan with joins, made while there are few rows, would read all of them when
      -- there are many.
     cross join lateral (select *, ctid as address from line where id = m.line offset 0) o
      join lane l on l.name = o.lane
      -- The search for the new head starts at the old one: only dead index entries lie before it.
      left join lateral (
        select r.rank, r.task_seq from ready r
         where m.starts > 0 and r.line = m.line and (r.rank, r.task_seq) >= (o.head_rank, o.head_seq)
         order by r.rank, r.task_seq offset m.starts limit 1) next on true
     cross join lateral (values (case when m.starts = 0 then o.head_rank else next.rank end,
                                 case when m.starts = 0 then o.head_seq else next.task_seq end)) h(rank, seq)),
  counted as (
    update line n
       set waiting = n.waiting - p.starts, exempt = n.exempt - p.exempt, ready = n.ready - p.starts,
           inflight = n.inflight + p.starts - p.slots, last_served = greatest(n.last_served, p.served),
           head_rank = p.rank, head_seq = p.seq, room = p.room, startable = p.room > 0, ahead = p.ahead
      from adjusted p
     where n.ctid = p.address
    returning case when n.agent_max is not null or n.shared then n.id end as limited),
  tenants as (
    update tenant_line t
       set waiting = t.waiting - d.starts, exempt = t.exempt - d.exempt, inflight = t.inflight + d.starts - d.slots,
           supply = t.supply + d.supply, urgent_lines = t.urgent_lines + d.urgent_lines,
           last_served = greatest(t.last_served, d.served), owed = greatest(t.owed - d.starts, 0),
           startable = not t.disabled and t.supply + d.supply > 0 and (t.inflight + d.starts - d.slots >= t.lane_max) is not true
      from (select lane, tenant, sum(starts)::integer as starts, sum(exempt)::integer as exempt, sum(slots)::integer as slots,
                   sum(room - old_room) as supply, max(served) as served,
                   sum((room > 0 and ahead)::integer - was_urgent::integer)::integer as urgent_lines
              from adjusted group by lane, tenant) d
     cross join lateral (select ctid as address from tenant_line where lane = d.lane and tenant = d.tenant offset 0) a
     where t.ctid = a.address
    returning t.lane, d.starts, d.slots, case when t.disabled then d.starts else d.exempt end as exempt,
              case when t.max_inflight is not null or t.crowded then t.tenant end as refreshed),
  totals as (
    update lane l
       set waiting = l.waiting - d.starts, exempt = l.exempt - d.exempt, inflight = l.inflight + d.starts - d.slots
      from (select lane, sum(starts)::integer as starts, sum(exempt)::integer as exempt, sum(slots)::integer as slots
              from tenants group by lane) d
     where l.name = d.lane),
  summed as (
    select array_agg(task_seq order by ordinal) as seqs, array_agg(tenant order by ordinal) as tenants,
           array_agg(attempt order by ordinal) as attempts,
           min(tenant) = max(tenant) and min(attempt) = max(attempt) as alike, min(tenant) as tenant, min(attempt) as attempt
      from chosen where ordinal <= v_slots),
  appended as (
    insert into event (last_seq, count, type, at, tenant, task_seqs, data)
    select p_tokens[1] + cardinality(seqs) - 1, cardinality(seqs), 'task.started', p_now, tenant, seqs, '{"attempt":' || attempt || '}'
      from summed where p_appends_events and p_state = 'running' and alike)
  select seqs || (select array_agg(task_seq order by ordinal) from chosen where ordinal > v_slots), tenants, attempts, alike,
         (select count(*) from found),
         (select array_agg(limited) filter (where limited is not null) from counted),
         (select array_agg(refreshed) filter (where refreshed is not null) from tenants)
    into v_seqs, v_tenants, v_attempts, v_alike, v_found, v_limited, v_refreshed from summed;
  if v_found <> cardinality(p_queues) then
    raise exception 'counters of lines % disagree with what is ready', p_queues;
  end if;
  if p_appends_events and p_state = 'running' and not v_alike then
    perform append_events(p_tokens[1], p_now, array_fill('task.started'::text, array[cardinality(v_tenants)]), v_tenants, v_seqs[:cardinality(v_tenants)],
                          array(select '{"attempt":' || a.attempt || '}' from unnest(v_attempts) with ordinality a(attempt, n) order by n));
  end if;
  if v_refreshed is not null then perform refresh_tenants(v_refreshed); end if;
  -- An agent with its own limit can fill up in one lane, and so change in all others.
  if v_limited is not null then
    perform refresh_startable(array(
      select s.id from line n join line s on s.tenant = n.tenant and s.agent = n.agent where n.id = any (v_limited)));
  end if;
  return v_seqs;
end $$;

-- Whether the first task of this agent queue may wait on a node until a slot is free.
create function is_head_holdable(p_queue bigint) returns boolean language plpgsql stable as $$
#variable_conflict use_column
begin
  return exists (select 1 from line n join task t on t.seq = n.head_seq where n.id = p_queue and :IS_HOLDABLE);
end $$;
