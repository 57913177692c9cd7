-- Whether the agent has an executor of its own.
create function is_served(p_tenant text, p_agent text) returns boolean language sql stable as $$
  select :SERVED from (select p_tenant as tenant, p_agent as agent) n
$$;

-- The pool of nodes with these profiles.
create function pool_of(p_profiles text[]) returns integer language plpgsql as $$
#variable_conflict use_column
declare
  v_id integer;
begin
  insert into pool (profiles) values (p_profiles) on conflict (profiles) do nothing;
  select id into v_id from pool where profiles = p_profiles;
  return v_id;
end $$;

-- Stores what a node can execute. What it named before is remembered. Returns whether an agent may have lost its executor.
create function save_abilities(p_now bigint, p_node text, p_profile text, p_kinds text[], p_agents json) returns boolean
language plpgsql as $$
#variable_conflict use_column
begin
  perform remember_agents(p_now, p_node);
  if p_profile <> '' then
    insert into profile (id, kinds) values (p_profile, p_kinds) on conflict (id) do nothing;
    if found then
      insert into profile_agent (agent, profile, serves)
      select a.key, p_profile, a.value::boolean from json_each_text(p_agents) a;
    end if;
  end if;
  update node set profile = p_profile where id = p_node;
  perform forget_profiles();
  -- A node that names an agent without an executor for it says that the agent needs none: this ends the memory of it.
  update agent_seen s set serves = false
    from profile_agent x where x.profile = p_profile and not x.serves and s.agent = x.agent and s.serves;
  return found;
end $$;

-- Remembers the agents of a node that is about to change its abilities, or is gone.
create function remember_agents(p_now bigint, p_node text) returns void language plpgsql as $$
#variable_conflict use_column
begin
  insert into agent_seen (agent, serves, at)
  select x.agent, x.serves, p_now from node n join profile_agent x on x.profile = n.profile where n.id = p_node
  on conflict (agent) do update set serves = agent_seen.serves or excluded.serves, at = excluded.at;
end $$;

create function forget_profiles() returns void language plpgsql as $$
begin
  delete from profile p where not exists (select 1 from node n where n.profile = p.id);
end $$;

create function forget_agents(p_now bigint) returns void language plpgsql as $$
declare
  v_now bigint := take_write_lock(p_now);
  v_forgotten integer;
begin
  with nodes as (delete from agent_seen where at <= v_now - :AGENT_MEMORY_MS returning 1),
  workers as (delete from worker_agent_seen where at <= v_now - :AGENT_MEMORY_MS returning 1)
  select 1 from nodes union all select 1 from workers limit 1 into v_forgotten;
  if v_forgotten is not null then perform abilities_changed(v_now, true); end if;
end $$;

-- Updates agent queues whenever a node joins, leaves or changes its abilities, and when a stored agent changes.
-- p_less_served: an agent may have lost its executor. While no node is alive, everything stays as it was.
create function abilities_changed(p_now bigint, p_less_served boolean) returns void language plpgsql as $$
#variable_conflict use_column
declare
  v_live text[] := array(select distinct profile collate "C" from node where not dead order by 1);
  v_common text[];
  v_before text[];
begin
  if v_live = '{}' then return; end if;
  v_common := array(
    select k from unnest('{:TASK_KINDS}'::text[]) k
     where not exists (select 1 from profile f where f.id = any (v_live) and k <> all (f.kinds)));
  select common_kinds into v_before from ability;
  update ability set common_kinds = v_common, live = v_live
   where common_kinds is distinct from v_common or live is distinct from v_live;
  if p_less_served or not v_before <@ v_common then perform split_agent_queues(v_common, null, null); end if;
  if label_agent_queues(p_now, v_live, null, null) then perform forget_served(); end if;
end $$;

-- The same for one stored agent that was created, changed or deleted. Other agents are not affected.
create function agent_changed(p_now bigint, p_tenant text, p_agent text) returns void language plpgsql as $$
declare
  v_ability ability;
begin
  perform 1 from node where not dead limit 1;
  if not found then return; end if;
  select * into v_ability from ability;
  perform split_agent_queues(v_ability.common_kinds, p_tenant, p_agent);
  if label_agent_queues(p_now, v_ability.live, p_tenant, p_agent) then perform forget_served(); end if;
end $$;

-- The same for agents that workers name, or no longer name; '*': all of the tenant.
create function worker_agents_changed(p_now bigint, p_tenant text, p_agents text[], p_worker text) returns void language plpgsql as $$
#variable_conflict use_column
declare
  v_ability ability;
  v_agent text;
  v_changed boolean := false;
begin
  -- While other workers run an agent, one more or less changes nothing.
  p_agents := array(
    select a from unnest(p_agents) a
     where not exists (select 1 from worker_agent w where w.tenant = p_tenant and w.agent = a and w.worker <> p_worker));
  if cardinality(p_agents) = 0 then return; end if;
  perform 1 from node where not dead limit 1;
  if not found then return; end if;
  select * into v_ability from ability;
  for v_agent in select distinct n.agent from line n
                  where n.tenant = p_tenant and (n.agent = any (p_agents) or ':ALL_AGENTS' = any (p_agents)) order by 1 loop
    perform split_agent_queues(v_ability.common_kinds, p_tenant, v_agent);
    v_changed := label_agent_queues(p_now, v_ability.live, p_tenant, v_agent) or v_changed;
  end loop;
  if v_changed then perform forget_served(); end if;
end $$;

-- Forgets since when tasks wait for an executor that have one now. Reads all that wait for one: call it once for all agents that
-- were labelled.
create function forget_served() returns void language sql as $$
  delete from unserved u
   where (select (select n.standing from line n where n.id = t.line) is distinct from 2 from task t where t.seq = u.task_seq);
$$;

-- The agent queues of this agent; p_tenant null: all. Queries by their ids use the index of these, where a condition that may or may
-- not name an agent would read all queues.
create function queues_of(p_tenant text, p_agent text) returns bigint[] language plpgsql stable as $$
begin
  if p_tenant is null then return array(select id from line); end if;
  return array(select n.id from line n where n.tenant = p_tenant and n.agent = p_agent);
end $$;

-- Moves tasks out of agent queues of all kinds that not every live node can execute any more. The cost grows with the
-- waiting and running tasks. p_tenant, p_agent: only of this agent; null: of all.
create function split_agent_queues(p_common text[], p_tenant text, p_agent text) returns void language plpgsql as $$
#variable_conflict use_column
declare
  v_queues bigint[];
  v_forms json;
  v_deltas queue_delta[];
begin
  v_queues := queues_of(p_tenant, p_agent);
  create temporary table moving on commit drop as
    select t.seq, t.line as source, null::bigint as target, readable_json(t.spec) #>> '{work,kind}' as kind, n.lane, n.tenant, n.agent, t.rank,
           t.origin is not null as exempt,
           exists (select 1 from ready r where r.line = t.line and r.rank = t.rank and r.task_seq = t.seq) as ready,
           exists (select 1 from lease l where l.task_seq = t.seq) as held,
           t.parked is not null or exists (select 1 from turn u where u.session = t.session and u.stage = 'parked' and u.place = t.place)
             as parked
      from line n
     -- Looked up here and below, and updated by address: a plan with joins, made while there are few rows, would read all of them
     -- when there are many.
     cross join lateral (
       select * from task where tenant = n.tenant and agent = n.agent and line = n.id and completed_at is null offset 0) t
     where n.id = any (v_queues) and n.kind = '' and n.waiting + n.inflight > 0 and n.agent <> ':DEFAULT_AGENT' and not :SERVED;
  delete from moving where kind = any (p_common);
  select json_agg(json_build_object('lane', lane, 'tenant', tenant, 'agent', agent, 'kind', kind)) into v_forms
    from (select lane, tenant, agent, kind, min(seq) as first from moving group by lane, tenant, agent, kind order by first) f;
  if v_forms is not null then
    update line n set served = false
      from (select distinct tenant, agent from moving) m
     cross join lateral (
       select ctid as address from line where tenant = m.tenant and agent = m.agent and served offset 0) a
     where n.ctid = a.address;
    perform create_agent_queues(v_forms);
    update moving m set target = (
      select n.id from line n where n.lane = m.lane and n.tenant = m.tenant and n.agent = m.agent and n.kind = m.kind);
    update task t set line = m.target
      from moving m cross join lateral (select ctid as address from task where seq = m.seq offset 0) a where t.ctid = a.address;
    -- Tasks with the same concurrency key may be in several agent queues now.
    update key_hold h set contested = true
      from moving m
     cross join lateral (select tenant, concurrency_key from task where seq = m.seq and concurrency_key is not null offset 0) t
     cross join lateral (select ctid as address from key_hold where tenant = t.tenant and key = t.concurrency_key offset 0) a
     where h.ctid = a.address and not h.contested;
    update ready r set line = m.target
      from moving m
     cross join lateral (select ctid as address from ready where line = m.source and rank = m.rank and task_seq = m.seq offset 0) a
     where m.ready and r.ctid = a.address;
    update lease l set line = m.target from moving m where m.held and l.task_seq = m.seq;
    select array_agg(d) into v_deltas
      from (select row(source, -count(*) filter (where not held), -count(*) filter (where exempt and not held),
                       -count(*) filter (where parked and not held), -count(*) filter (where ready),
                       -count(*) filter (where held), null, null, null)::queue_delta as d
              from moving group by source) s;
    perform apply_deltas(v_deltas);
    select array_agg(d) into v_deltas
      from (select row(target, count(*) filter (where not held), count(*) filter (where exempt and not held),
                       count(*) filter (where parked and not held), count(*) filter (where ready), count(*) filter (where held), null,
                       (min(array[rank, seq]) filter (where ready))[1], (min(array[rank, seq]) filter (where ready))[2])::queue_delta as d
              from moving group by target) t;
    perform apply_deltas(v_deltas);
  end if;
  drop table moving;
end $$;

-- The agent queue of a task that had ended: the nodes that can execute it may have changed since.
create function current_agent_queue(p_task task) returns bigint language plpgsql as $$
#variable_conflict use_column
declare
  v_queue record;
  v_kind text := readable_json(p_task.spec) #>> '{work,kind}';
  v_id bigint;
begin
  select * into v_queue from line where id = p_task.line;
  if not :IS_ALONE_QUEUE and (v_queue.kind <> '' or v_queue.served or v_queue.agent = ':DEFAULT_AGENT'
     or v_kind = any ((select common_kinds from ability)::text[])) then return p_task.line; end if;
  perform create_agent_queues(json_build_array(
    json_build_object('lane', v_queue.lane, 'tenant', v_queue.tenant, 'agent', v_queue.agent, 'kind', v_kind)));
  select n.id into v_id from line n
   where n.lane = v_queue.lane and n.tenant = v_queue.tenant and n.agent = v_queue.agent
     and n.kind = (select :QUEUE_KIND
                     from (select v_queue.tenant as tenant, v_queue.agent as agent, v_kind as kind) t);
  return v_id;
end $$;

-- Makes these tasks, which attempts hold, run alone from now on.
create function move_to_alone(p_seqs bigint[]) returns void language plpgsql as $$
#variable_conflict use_column
declare
  v_forms json;
  v_deltas queue_delta[];
begin
  select json_agg(json_build_object('lane', lane, 'tenant', tenant, 'agent', agent, 'kind', kind)) into v_forms
    from (select n.lane, n.tenant, n.agent, :ALONE_KIND as kind, min(t.seq) as first
            from unnest(p_seqs) u(seq)
           cross join lateral (select seq, line, spec from task where seq = u.seq offset 0) t
           cross join lateral (select * from line where id = t.line offset 0) n where not :IS_ALONE
           group by 1, 2, 3, 4 order by first) f;
  if v_forms is null then return; end if;
  perform create_agent_queues(v_forms);
  with moving as (
    select t.seq, t.address, n.id as source, a.id as target, t.tenant, t.concurrency_key
      from unnest(p_seqs) u(seq)
     cross join lateral (
       select seq, ctid as address, line, tenant, concurrency_key, spec from task where seq = u.seq offset 0) t
     cross join lateral (select * from line where id = t.line offset 0) n
     cross join lateral (
       select id from line where lane = n.lane and tenant = n.tenant and agent = n.agent and kind = :ALONE_KIND offset 0) a
     where not :IS_ALONE),
  moved as (update task t set line = m.target from moving m where t.ctid = m.address),
  held as (update lease l set line = m.target from moving m where l.task_seq = m.seq),
  -- Tasks with the same concurrency key may be in several agent queues now.
  contested as (
    update key_hold h set contested = true
      from moving m
     cross join lateral (select ctid as address from key_hold where tenant = m.tenant and key = m.concurrency_key offset 0) k
     where h.ctid = k.address and not h.contested)
  select array_agg(row(line, 0, 0, 0, 0, moves, null, null, null)::queue_delta) into v_deltas
    from (select source as line, -count(*)::integer as moves from moving group by source
          union all
          select target, count(*)::integer from moving group by target) d;
  perform apply_deltas(v_deltas);
end $$;

-- Updates which nodes can execute the tasks of agent queues. p_tenant, p_agent: only of this agent; null: of all. Returns whether
-- anything changed.
create function label_agent_queues(p_now bigint, p_live text[], p_tenant text, p_agent text) returns boolean language plpgsql as $$
#variable_conflict use_column
declare
  v_queues bigint[] := queues_of(p_tenant, p_agent);
  v_changed bigint[];
  v_found text[];
begin
  update line n set served = not n.served where n.id = any (v_queues) and n.served <> :SERVED;
  insert into pool (profiles)
  select distinct able
    from (select n.kind, :ABLE as able from line n where n.id = any (v_queues)) l
   where able <> '{}' and (able <> p_live or kind <> '')
  on conflict (profiles) do nothing;
  with fresh as (
    select l.address, :STANDING as standing,
           case when l.able = '{}' or (l.able = p_live and l.kind = '') then 0
                else (select p.id from pool p where p.profiles = l.able) end as pool
      from (select n.ctid as address, n.kind, n.served, n.tenant, n.agent, :ABLE as able from line n where n.id = any (v_queues)) l),
  changed as (
    update line n set standing = f.standing, pool = f.pool,
                      room = case when f.standing = 0 then n.room else 0 end,
                      startable = n.startable and f.standing = 0
      from fresh f
     where n.ctid = f.address and (n.standing, n.pool) is distinct from (f.standing::smallint, f.pool)
    returning n.id, n.lane, n.standing, n.room)
  select array_agg(id), array_agg(distinct lane) filter (where standing = 0 and room = 0) into v_changed, v_found from changed;
  if v_changed is not null then
    perform recount_supply(v_changed);
    perform refresh_startable(v_changed);
    if v_found is not null then perform defer_work('lanes_to_recheck', v_found); end if;
  end if;
  if p_tenant is null then
    delete from pool p where not exists (select 1 from line n where n.pool = p.id);
  end if;
  :PREEMPT_AT_P_NOW
  return v_changed is not null;
end $$;

-- Corrects the sums of tenants after room of these agent queues was changed directly.
create function recount_supply(p_queues bigint[]) returns void language plpgsql as $$
#variable_conflict use_column
declare
  v_tenants text[] := array(select distinct n.tenant from line n where n.id = any (p_queues));
begin
  update tenant_line t
     set supply = s.supply, urgent_lines = s.urgent_lines, startable = not t.disabled and s.supply > 0 and (t.inflight >= t.lane_max) is not true
    from (select lane, tenant, sum(room) as supply, (count(*) filter (where startable and ahead))::integer as urgent_lines
            from line where tenant = any (v_tenants) group by lane, tenant) s
   where t.tenant = s.tenant and t.lane = s.lane;
  perform refresh_tenants(v_tenants);
end $$;

-- Marks agent queues and fails tasks. Returns tenant, agent and lane of failed tasks. A row with only next_at: when there
-- will be more to do.
create function fail_unserved(p_now bigint, p_after bigint, p_limit integer)
returns table (tenant text, agent text, lane text, next_at bigint) language plpgsql as $$
#variable_conflict use_column
declare
  v_now bigint := take_write_lock(p_now);
  v_marked integer;
  v_due bigint[];
  v_seq bigint;
begin
  delete from unserved u where not exists (select 1 from task t where t.seq = u.task_seq and t.completed_at is null);
  with waiting as (
    select r.task_seq as seq from line n join ready r on r.line = n.id where n.standing = 2 and n.waiting > 0
    union all
    select t.seq from line n join task t on t.tenant = n.tenant and t.parked is not null and t.line = n.id
     where n.standing = 2 and n.waiting > 0 and n.parked > 0
    union all
    select t.seq from turn u join task t on t.seq = u.task_seq join line n on n.id = t.line and n.standing = 2
     where u.stage = 'parked' and exists (select 1 from line where standing = 2 and waiting > 0 and parked > 0)),
  marked as (
    insert into unserved (task_seq, at)
    select w.seq, v_now from waiting w where not exists (select 1 from unserved u where u.task_seq = w.seq)
     order by w.seq limit p_limit + 1
    returning task_seq)
  select count(*) into v_marked from marked;
  if v_marked > p_limit then
    delete from unserved where task_seq = (select max(task_seq) from unserved where at = v_now);
  end if;
  v_due := array(select task_seq from unserved where at <= v_now - p_after order by at, task_seq limit p_limit + 1);
  for v_seq in select * from unnest(v_due[:p_limit]) loop
    select n.tenant, n.agent, n.lane into tenant, agent, lane from task t join line n on n.id = t.line where t.seq = v_seq;
    perform end_waiting(v_now, array[v_seq], 'failed',
      (select :NO_EXECUTOR_ERROR from task t where t.seq = v_seq), false);
    return next;
  end loop;
  delete from unserved where task_seq = any (v_due[:p_limit]);
  perform settle_moves(v_now, :RELEASED_MAX);
  :PREEMPT_AT_V_NOW
  tenant := null;
  agent := null;
  lane := null;
  next_at := case when v_marked > p_limit or cardinality(v_due) > p_limit then v_now
                  else (select min(at) from unserved) + p_after end;
  return next;
end $$;
