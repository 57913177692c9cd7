-- Pre-empts a running task for each critical task that finds no free slot: in lanes where a critical task became ready, and
-- in lanes to recheck, where a waiting one may have lost the slot that it waits for.
create function preempt(p_now bigint) returns void language plpgsql as $$
#variable_conflict use_column
declare
  v_new_critical_tasks bigint[];
  v_lanes_to_recheck text[];
  v_lane text;
  v_tokens bigint[] := '{}';
begin
  -- If no lease can be pre-empted, there is nothing to do.
  perform 1 from lease where priority is not null limit 1;
  if not found then return; end if;
  v_new_critical_tasks := take_deferred_work('new_critical_tasks')::bigint[];
  v_lanes_to_recheck := take_deferred_work('lanes_to_recheck');
  -- Tasks that have started meanwhile are no longer ready.
  for v_lane in
    select x.lane
      from (select unnest(v_lanes_to_recheck) as lane
            union
            select n.lane
              from unnest(v_new_critical_tasks) a(seq)
              join task t on t.seq = a.seq
              join ready r on r.line = t.line and r.rank = t.rank and r.task_seq = t.seq
              join line n on n.id = t.line) x
      join lane l on l.name = x.lane
     where (select h.token from lease h where h.lane = x.lane and h.priority is not null limit 1) is not null
     order by x.lane
  loop
    v_tokens := v_tokens || preempt_in(p_now, v_lane, v_new_critical_tasks);
  end loop;
  if cardinality(v_tokens) = 0 then return; end if;
  -- If its session may run fewer now, the pre-empted task is parked at once, and its key may go to another task.
  if :SESSIONS_DEFERRED or :KEYS_DEFERRED then perform settle_moves(p_now, :RELEASED_MAX); end if;
  -- Rare enough for a notification inside the transaction, and any node may run one of them.
  perform pg_notify('rota', json_build_object('from', '', 'signals', json_build_array(
    json_build_object('kind', 'events'),
    json_build_object('kind', 'fenced', 'tokens', v_tokens[1: :TOKENS_MAX], 'reason', 'preempted'),
    json_build_object('kind', 'work'),
    json_build_object('kind', 'due')))::text);
end $$;

-- Returns the tokens of the pre-empted attempts.
create function preempt_in(p_now bigint, p_lane text, p_new_critical_tasks bigint[]) returns bigint[] language plpgsql as $$
#variable_conflict use_column
declare
  v_lane lane;
  v_nodes text[];
  v_free bigint;
  v_turns bigint[];
  v_tenants text[];
  v_yielding bigint[];
  v_critical record;
  v_lease lease;
  v_ended ended_attempt[] := '{}';
  v_tokens bigint[] := '{}';
  v_owners text[] := '{}';
  v_queues_without_lease bigint[] := '{}';
  v_able text[];
  v_every integer;
  v_each integer;
  v_left jsonb;
begin
  select * into v_lane from lane where name = p_lane;
  select p.id into v_every from pool p join ability a on a.live = p.profiles;
  -- Nodes that would fill a freed slot. A node that has reduced its slots below the tasks it runs would not.
  select array_agg(node), greatest(least(sum(free), v_lane.total - v_lane.inflight), 0) into v_nodes, v_free
    from (select s.node, :FREE_SLOTS as free
            from node_slot s join node d on d.id = s.node and not d.dead
            left join (select node, count(*) as held, count(*) filter (where state = 'running') as running
                         from lease where lane = p_lane group by node) h on h.node = s.node
           where s.lane = p_lane) n
   where free >= 0;
  select array_agg(tenant), array_agg(tasks) into v_tenants, v_yielding
    from (select tenant, count(*) as tasks from lease
           where lane = p_lane and priority is not null and node = any (v_nodes) group by tenant) y;
  if v_tenants is null then return v_tokens; end if;
  select p_each, p_left into v_each, v_left from slots_on_nodes(v_lane, v_nodes);
  -- If there are more slots than tasks, every tenant gets what its own limits leave.
  if v_free < v_lane.waiting then
    select turns into v_turns from share_out(v_lane, v_free::integer, null, v_each, v_left);
  end if;
  -- All needs are computed before the first task is pre-empted.
  for v_critical in
    select c.*, t.id, t.tenant
      from (select line, rank, seq, true as held_by_agent from criticals_at_agent_limit(p_lane, p_new_critical_tasks)
            union all
            select u.line, u.rank, u.seq, false from without_slot_of_pools(v_lane, v_every, v_nodes) u
            union all
            select u.line, u.rank, u.seq, false
              from unnest(v_tenants, v_yielding) y(tenant, tasks)
              join tenant_line o on o.tenant = y.tenant and o.lane = p_lane and not o.disabled
             cross join lateral (
               select greatest(case when v_turns is null
                                    then least(:OWNER_ROOM, coalesce((v_left ->> o.tenant)::integer, v_each))
                                    else (select count(*) from unnest(v_turns) t(id) where t.id = o.id) end, 0) as share) s
             cross join lateral (
               select u.* from usable_criticals(p_lane, y.tenant, v_every, s.share + y.tasks) u
                order by u.rank, u.seq offset s.share limit y.tasks) u) c
     cross join lateral (select id, tenant from task where seq = c.seq offset 0) t
     order by c.rank, c.seq
  loop
    -- A slot of a node is only useful for a task that the node can execute.
    select case when n.pool = 0 or n.pool = v_every then v_nodes
                else array(select d.id from node d join pool p on p.id = n.pool and d.profile = any (p.profiles)
                            where d.id = any (v_nodes)) end
      into v_able from line n where n.id = v_critical.line;
    -- A tenant that holds more than its share could not use the freed slot.
    if v_lane.second_tenant then
      perform 1 from tenant_line t where t.lane = p_lane and t.tenant = v_critical.tenant and t.inflight > t.lane_max;
      continue when found;
      v_able := nodes_within_share(p_lane, v_critical.tenant, v_able);
    end if;
    -- A task beyond the limits of its agent needs a slot of that agent; any other needs a slot of its tenant.
    if v_critical.held_by_agent then
      continue when v_critical.line = any (v_queues_without_lease);
      :TAKE_LEASE_OF_AGENT;
      if not found then v_queues_without_lease := v_queues_without_lease || v_critical.line; continue; end if;
    else
      :TAKE_LEASE_OF_TENANT;
      continue when not found;
    end if;
    v_tokens := v_tokens || v_lease.token;
    v_owners := v_owners || v_critical.tenant;
    v_ended := v_ended || row(cardinality(v_tokens), v_lease.task_seq, v_lease.token, v_lease.node, v_lease.line, v_lease.attempt,
                              v_lease.started_at, 'queued', 'preempted', false, null,
                              ':PREEMPTION_ERROR', null, null, null, null, null, null, true)::ended_attempt;
  end loop;
  if cardinality(v_tokens) = 0 then return v_tokens; end if;
  perform end_attempts(p_now, v_ended);
  -- The tenant gets the freed slot for a critical task: one more start that may go ahead of fairness.
  update tenant_line t
     set owed = t.owed + o.slots,
         ahead_streak = t.ahead_streak - case when v_lane.strategy = 'fair-fifo' then o.slots else 0 end
    from (select tenant, count(*)::integer as slots from unnest(v_owners) u(tenant) group by tenant) o
   where t.tenant = o.tenant and t.lane = p_lane;
  if v_lane.crowded then perform refresh_tenants(v_owners); end if;
  return v_tokens;
end $$;

-- The first critical tasks of a tenant that lack nothing but a slot; it may return more of them.
create function usable_criticals(p_lane text, p_tenant text, p_every integer, p_count bigint)
returns table (line bigint, rank bigint, seq bigint) language plpgsql stable as $$
#variable_conflict use_column
begin
  return query
    select c.id, r.rank, r.task_seq
      from ((select n.id, n.head_rank, n.head_seq, n.room
               from line n where n.lane = p_lane and n.tenant = p_tenant and n.startable and n.ahead and n.pool = 0 and n.head_rank <= :PRIORITY_CRITICAL
              order by n.head_rank, n.head_seq limit p_count)
            union all
            (select n.id, n.head_rank, n.head_seq, n.room
               from line n where n.lane = p_lane and n.tenant = p_tenant and n.startable and n.ahead and n.pool <> 0
                and n.pool = p_every and n.head_rank <= :PRIORITY_CRITICAL
              order by n.head_rank, n.head_seq limit p_count)) c
     cross join lateral (
       select rank, task_seq from ready
        where line = c.id and (rank, task_seq) >= (c.head_rank, c.head_seq) and rank <= :PRIORITY_CRITICAL
        order by rank, task_seq limit least(c.room, p_count)) r;
end $$;

-- The critical tasks that only some nodes can execute, beyond the free slots on those nodes that their tenants may use.
create function without_slot_of_pools(p_lane lane, p_every integer, p_nodes text[])
returns table (line bigint, rank bigint, seq bigint) language plpgsql stable as $$
#variable_conflict use_column
begin
  -- Usually there are no such agent queues.
  if not exists (select 1 from line n where n.lane = (p_lane).name and n.startable and n.pool <> 0) then return; end if;
  return query
    select u.line, u.rank, u.seq
      from (select distinct n.pool from line n
             where n.lane = (p_lane).name and n.startable and n.ahead and n.pool <> 0 and n.head_rank <= :PRIORITY_CRITICAL
               and n.pool is distinct from p_every) o
     cross join lateral (
       select greatest(least(sum(:FREE_SLOTS), (p_lane).total - (p_lane).inflight), 0) as free,
              coalesce(sum(h.yielding), 0) as yielding, array_agg(d.id) as nodes
         from pool p join node d on d.profile = any (p.profiles) and d.id = any (p_nodes)
         join node_slot s on s.node = d.id and s.lane = (p_lane).name
         left join (select l.node, count(*) as held, count(*) filter (where l.state = 'running') as running, count(*) filter (where l.priority is not null) as yielding
                      from lease l where l.lane = (p_lane).name group by l.node) h on h.node = d.id
        where p.id = o.pool) f
     cross join lateral slots_on_nodes(p_lane, f.nodes)
     cross join lateral (
       select s.line, s.rank, s.seq
         from (select t.*, count(*) filter (where t.ordinal <= t.own) over (order by t.rank, t.seq) as seat
                 from (select c.id as line, r.rank, r.task_seq as seq, b.own,
                              row_number() over (partition by t.tenant order by r.rank, r.task_seq) as ordinal
                         from (select distinct n.tenant from line n
                                where n.lane = (p_lane).name and n.startable and n.ahead and n.pool <> 0 and n.pool = o.pool
                                  and n.head_rank <= :PRIORITY_CRITICAL) w
                         join tenant_line t on t.tenant = w.tenant and t.lane = (p_lane).name and not t.disabled
                        cross join lateral (select greatest(least(:TENANT_ROOM, :LEFT_FOR_TENANT), 0) as own) b
                        cross join lateral (
                          select n.id, n.head_rank, n.head_seq, n.room
                            from line n
                           where n.lane = (p_lane).name and n.tenant = t.tenant and n.startable and n.ahead and n.pool <> 0
                             and n.pool = o.pool and n.head_rank <= :PRIORITY_CRITICAL
                           order by n.head_rank, n.head_seq limit f.free + f.yielding) c
                        cross join lateral (
                          select rank, task_seq from ready
                           where line = c.id and (rank, task_seq) >= (c.head_rank, c.head_seq) and rank <= :PRIORITY_CRITICAL
                           order by rank, task_seq limit least(c.room, f.free + f.yielding)) r) t) s
        where s.ordinal > s.own or s.seat > f.free) u;
end $$;

-- The ready critical tasks among these that do not fit into the limits of their agent after the tasks before them.
create function criticals_at_agent_limit(p_lane text, p_seqs bigint[])
returns table (line bigint, rank bigint, seq bigint) language plpgsql stable as $$
#variable_conflict use_column
begin
  return query
    with arrived as materialized (
      select t.line, t.rank, t.seq
        from (select distinct u.seq from unnest(p_seqs) u(seq)) a
        join task t on t.seq = a.seq
        join ready r on r.line = t.line and r.rank = t.rank and r.task_seq = t.seq
        join line n on n.id = t.line and n.lane = p_lane and n.standing = 0
        join tenant_line o on o.tenant = n.tenant and o.lane = n.lane and not o.disabled),
    -- The last task of each agent queue that its agent could still start. all_usable: it could start all of them.
    bounds as materialized (
      select n.id as line, n.room >= n.ready as all_usable, last.rank, last.task_seq
        from (select n.id, n.ready, n.head_rank, n.head_seq, n.room
                from line n where n.id in (select line from arrived)) n
        left join lateral (
          select r.rank, r.task_seq from ready r
           where n.room > 0 and n.room < n.ready
             and r.line = n.id and (r.rank, r.task_seq) >= (n.head_rank, n.head_seq)
           order by r.rank, r.task_seq offset greatest(n.room - 1, 0) limit 1) last on true)
    select a.line, a.rank, a.seq
      from arrived a join bounds b on b.line = a.line
     where not b.all_usable and ((a.rank, a.seq) <= (b.rank, b.task_seq)) is not true;
end $$;
