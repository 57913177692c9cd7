-- p_freed: agent queues of freed slots that are not recorded yet; see can_record_later. p_each, p_left: what tenants may
-- take of the slots; see tenant-shares.ts. first_token: the token of the first of seqs; the others follow. p_as: 'running',
-- 'assigned', or 'ahead': assigned, for slots that are not free yet, and only tasks that may wait on a node. critical_waits:
-- nothing was claimed ahead, because a critical task lacks only a slot.
create function claim_tasks(
  p_now bigint, p_node text, p_lane text, p_limit integer, p_freed bigint[], p_each integer, p_left text, p_as text,
  out seqs bigint[], out first_token bigint, out critical_waits boolean)
language plpgsql as $$
#variable_conflict use_column
declare
  v_lane lane;
  v_state text := case when p_as = 'ahead' then 'assigned' else p_as end;
  v_pooled boolean := exists (select 1 from line where lane = p_lane and startable and pool <> 0);
  v_left integer;
  v_own tenant_line;
  v_turns bigint[];
  v_urgent boolean;
  v_after_criticals boolean;
  v_queues bigint[];
  v_each integer;
  v_left_of jsonb;
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
  if p_as = 'ahead' then
    critical_waits := v_lane.strategy = 'fair-fifo' and exists (
      select 1 from tenant_line t where t.lane = p_lane and t.startable and t.urgent_lines > 0 and :TENANT_ROOM > 0);
    if critical_waits or v_lane.strategy <> 'fair-fifo' then p_limit := 0; end if;
  end if;
  if v_pooled then
    select * into seqs, first_token from claim_of_pools(p_now, p_node, p_lane, p_limit, v_each, v_left_of, p_as);
    return;
  end if;
  v_left := least(p_limit, v_lane.total - v_lane.inflight + coalesce(cardinality(p_freed), 0));
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
    if v_left > 0 and v_own.urgent_lines > 0 then
      v_turns := array_fill(v_own.id, array[least(v_left, v_own.supply)::integer]);
      first_token := take_event_numbers(cardinality(v_turns));
      seqs := start_in_turns(p_now, p_node, v_lane, v_turns, first_token, v_state);
      return;
    end if;
    v_queues := case when v_left > 0 then choose_queues_of_tenant(v_lane, v_own.tenant, v_left, p_freed) end;
    v_turns := array[v_own.id];
    v_after_criticals := v_own.ahead_streak <> 0;
  elsif v_left > 0 then
    select turns, urgent, after_criticals into v_turns, v_urgent, v_after_criticals from share_out(v_lane, v_left, p_freed, v_each, v_left_of);
    if v_urgent and cardinality(v_turns) > 0 then
      first_token := take_event_numbers(cardinality(v_turns));
      seqs := start_in_turns(p_now, p_node, v_lane, v_turns, first_token, v_state);
      return;
    end if;
    v_queues := case when cardinality(v_turns) > 0 then choose_queues_fairly(v_lane, v_turns, p_freed) end;
  end if;
  if p_as = 'ahead' and cardinality(v_queues) > 0 then v_queues := v_queues[:count_holdable(v_queues)]; end if;
  if coalesce(cardinality(v_queues), 0) = 0 then
    if p_freed is not null then perform apply_deltas(freed_slots(p_freed)); end if;
    return;
  end if;
  first_token := take_event_numbers(cardinality(v_queues));
  seqs := start_attempts(
    p_now, p_node, v_queues, array(select generate_series(first_token, first_token + cardinality(v_queues) - 1)), p_freed,
    v_state, true);
  if v_after_criticals then
    update tenant_line set ahead_streak = 0 where id = any (v_turns) and ahead_streak <> 0;
  end if;
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
    exit when p_as = 'ahead' and count_holdable(array[v_queue]) = 0;
    v_token := take_event_numbers(1);
    first_token := coalesce(first_token, v_token);
    v_started := start_attempts(p_now, p_node, array[v_queue], array[v_token], null,
                                case when p_as = 'ahead' then 'assigned' else p_as end, true);
    seqs := coalesce(seqs, '{}') || v_started;
    if p_each is not null then p_left := slots_after(p_each, p_left, v_started); end if;
    update tenant_line set ahead_streak = v_own.ahead_streak where id = v_own.id and ahead_streak <> v_own.ahead_streak;
  end loop;
end $$;

-- Whether freed slots can be recorded together with the starts in this lane: all of them are in this lane, and only
-- fairness decides.
create function can_record_later(p_freed bigint[], p_lane text) returns boolean language plpgsql stable as $$
#variable_conflict use_column
begin
  return not exists (
           select 1 from line n
            where n.id = any (p_freed)
              and (n.lane <> p_lane or n.ahead or n.agent_max is not null or n.shared or n.standing <> 0 or n.pool <> 0))
     and not exists (select 1 from line where lane = p_lane and startable and ahead and pool = 0);
end $$;

-- Starts tasks in the turns of tenants if something goes ahead of fairness. It chooses for each tenant separately, and
-- appends the events in the order of the turns, numbered from p_first on.
create function start_in_turns(
  p_now bigint, p_node text, p_lane lane, p_turns bigint[], p_first bigint, p_state text)
returns bigint[] language plpgsql as $$
#variable_conflict use_column
declare
  v_owner record;
  v_seqs bigint[] := '{}';
  v_tenants text[];
  v_data text[];
begin
  for v_owner in
    select t.id, array_agg(p_first + u.ordinal - 1 order by u.ordinal) as tokens
      from unnest(p_turns) with ordinality u(id, ordinal) join tenant_line t on t.id = u.id group by t.id order by t.id
  loop
    v_seqs := v_seqs || start_tenant_tasks(p_now, p_node, p_lane, v_owner.id, v_owner.tokens, p_state);
  end loop;
  select array_agg(l.task_seq order by l.token), array_agg(t.tenant order by l.token),
         array_agg('{"attempt":' || l.attempt || '}' order by l.token)
    into v_seqs, v_tenants, v_data
    from unnest(v_seqs) u(seq) join lease l on l.task_seq = u.seq join task t on t.seq = u.seq;
  if p_state = 'running' then
    perform append_events(p_first, p_now, array_fill('task.started'::text, array[cardinality(v_seqs)]), v_tenants, v_seqs, v_data);
  end if;
  return v_seqs;
end $$;

-- Starts one task of a tenant for each token. Critical tasks go ahead of fairness, but after a number of consecutive
-- critical starts one start is fair.
create function start_tenant_tasks(
  p_now bigint, p_node text, p_lane lane, p_owner bigint, p_tokens bigint[], p_state text)
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
      p_now, p_node, v_queues, v_tokens[:cardinality(v_queues)], null, p_state, false);
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
    -- The index does not contain the freed slots yet: those queues are read besides, with the room that they will have.
    with freed as (select line, count(*)::integer as slots from unnest(p_freed) u(line) group by line),
    candidate as (
      select line as id from freed
      union
      (select n.id from line n where n.lane = (p_lane).name and n.tenant = p_tenant and n.startable and n.pool = 0
        order by n.inflight, n.last_served, n.id limit p_count + cardinality(p_freed))),
    adjusted as (
      select n.id, n.inflight - coalesce(f.slots, 0) as inflight, n.last_served,
             case when f.slots is null then n.room else :ROOM_WHEN_FREED end as room
        from candidate c join line n on n.id = c.id and n.tenant = p_tenant left join freed f on f.line = c.id)
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
  with freed as (select line, count(*)::integer as slots from unnest(p_freed) u(line) group by line),
  need as (
    select t.id as owner, t.tenant, u.starts
      from (select id, count(*)::integer as starts from unnest(p_turns) u(id) group by id) u
      join tenant_line t on t.id = u.id),
  candidate as (
    select need.owner, need.starts, f.line as id
      from freed f join line n on n.id = f.line join need on need.tenant = n.tenant
    union
    select need.owner, need.starts, c.id
      from need
     cross join lateral (
       select n.id from line n where n.lane = (p_lane).name and n.tenant = need.tenant and n.startable and n.pool = 0
        order by n.inflight, n.last_served, n.id limit need.starts + coalesce(cardinality(p_freed), 0)) c),
  adjusted as (
    select c.owner, c.starts, n.id, n.inflight - coalesce(f.slots, 0) as inflight, n.last_served,
           case when f.slots is null then n.room else :ROOM_WHEN_FREED end as room
      from candidate c join line n on n.id = c.id left join freed f on f.line = c.id),
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

-- Starts the first tasks of these agent queues, one for each entry, in the order of the entries and with these tokens, and
-- records p_freed with it. p_state: running or assigned. p_appends_events: false if the caller appends the events.
create function start_attempts(
  p_now bigint, p_node text, p_queues bigint[], p_tokens bigint[], p_freed bigint[], p_state text, p_appends_events boolean)
returns bigint[] language plpgsql as $$
#variable_conflict use_column
declare
  v_seqs bigint[];
  v_tenants text[];
  v_data text[];
  v_deltas queue_delta[];
begin
  with need as (
    select line, array_agg(ordinal order by ordinal) as ordinals from unnest(p_queues) with ordinality u(line, ordinal) group by line),
  chosen as materialized (
    select o.id as line, o.lane, r.entry, r.task_seq, need.ordinals[r.n] as ordinal, p_tokens[need.ordinals[r.n]] as token,
           t.executions + 1 as attempt, t.tenant, t.priority, t.session,
           (t.origin is not null)::integer as exempt,
           t.priority > 0 and t.preemptions_left > 0 and p_state = 'running' as gives_way
      from need
      join line o on o.id = need.line
     cross join lateral (
       select ctid as entry, task_seq, row_number() over (order by rank, task_seq) as n from ready
        where line = need.line and (rank, task_seq) >= (o.head_rank, o.head_seq)
        order by rank, task_seq limit cardinality(need.ordinals)) r
     cross join lateral (select executions, tenant, priority, session, origin, preemptions_left from task where seq = r.task_seq and resting_state = 'queued' offset 0) t),
  gone as (
    delete from ready where ctid = any (array(select entry from chosen))),
  held as (
    insert into lease (task_seq, token, node, line, state, attempt, started_at, session, lane, tenant, priority)
    select task_seq, token, p_node, line, p_state, attempt, p_now, session, lane, case when gives_way then tenant end,
           case when gives_way then priority end from chosen)
  select array_agg(task_seq order by ordinal), array_agg(tenant order by ordinal),
         array_agg('{"attempt":' || attempt || '}' order by ordinal),
         (select array_agg(row(line, -starts, -exempt, 0, -starts, starts, served, null, null)::queue_delta)
            from (select line, count(*)::integer as starts, sum(exempt)::integer as exempt, max(token) as served
                    from chosen group by line) c)
    into v_seqs, v_tenants, v_data, v_deltas from chosen;
  if coalesce(cardinality(v_seqs), 0) <> cardinality(p_queues) then
    raise exception 'counters of lines % disagree with what is ready', p_queues;
  end if;
  if p_appends_events and p_state = 'running' then
    perform append_events(p_tokens[1], p_now, array_fill('task.started'::text, array[cardinality(v_seqs)]), v_tenants, v_seqs, v_data);
  end if;
  perform apply_deltas(v_deltas || case when p_freed is not null then freed_slots(p_freed) end);
  return v_seqs;
end $$;

-- How many starts of these agent queues, from the first on, are of tasks that may wait on a node until a slot is free.
create function count_holdable(p_queues bigint[]) returns integer language plpgsql stable as $$
#variable_conflict use_column
begin
  return coalesce((
    with need as (
      select line, array_agg(ordinal order by ordinal) as ordinals from unnest(p_queues) with ordinality u(line, ordinal) group by line)
    select min(need.ordinals[r.n]) - 1
      from need
      join line o on o.id = need.line
     cross join lateral (
       select task_seq, row_number() over (order by rank, task_seq) as n from ready
        where line = need.line and (rank, task_seq) >= (o.head_rank, o.head_seq)
        order by rank, task_seq limit cardinality(need.ordinals)) r
     cross join lateral (
       select 1 from task t
        where t.seq = r.task_seq
          and (t.session is not null or t.concurrency_key is not null or t.executions > 0 or t.max_retries_if_lost = 0
               or (t.batch is not null
                   and exists (select 1 from batch b where b.id = t.batch and b.parallelism is not null))) offset 0) t),
    cardinality(p_queues));
end $$;

-- Assigned attempts that this node still holds and that have begun become running. p_started: when; null: when they were
-- claimed.
create function begin_attempts(p_now bigint, p_node text, p_seqs bigint[], p_tokens bigint[], p_started bigint[])
returns void language plpgsql as $$
#variable_conflict use_column
declare
  v_seqs bigint[];
  v_tenants text[];
  v_data text[];
  v_lanes text[];
begin
  with given as (
    select b.n, b.seq, b.token, b.started, t.tenant, t.priority, t.priority > 0 and t.preemptions_left > 0 as gives_way
      from unnest(p_seqs, p_tokens, p_started) with ordinality b(seq, token, started, n) join task t on t.seq = b.seq),
  begun as (
    update lease l
       set state = 'running',
           started_at = greatest(least(coalesce(g.started, l.started_at), p_now), l.started_at),
           tenant = case when g.gives_way then g.tenant end,
           priority = case when g.gives_way then g.priority end
      from given g
     where l.task_seq = g.seq and l.token = g.token and l.node = p_node and l.state = 'assigned'
    returning g.n, l.task_seq, g.tenant, l.attempt, l.lane, g.gives_way)
  select array_agg(task_seq order by n), array_agg(tenant order by n), array_agg('{"attempt":' || attempt || '}' order by n),
         array_agg(distinct lane) filter (where gives_way)
    into v_seqs, v_tenants, v_data, v_lanes from begun;
  if v_seqs is null then return; end if;
  perform append_events(take_event_numbers(cardinality(v_seqs)), p_now,
               array_fill('task.started'::text, array[cardinality(v_seqs)]), v_tenants, v_seqs, v_data);
  -- A critical task that waits may pre-empt them from now on.
  if v_lanes is not null then perform defer_work('lanes_to_recheck', v_lanes); end if;
end $$;
