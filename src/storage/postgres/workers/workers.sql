-- Registers a worker, or registers that of the same instance again. "full_of" names the limit that keeps it out. "served_agent":
-- workers may not run it.
create function register_worker(
  p_now bigint, p_id text, p_tenant text, p_instance text, p_key text, p_name text, p_agents text[], p_slots integer,
  p_labels json, p_version text, p_runtime text, p_lease_ms integer, p_heartbeat_ms integer)
returns table (id text, is_new boolean, full_of text, served_agent text) language plpgsql as $$
#variable_conflict use_column
declare
  v_now bigint := take_write_lock(p_now);
  v_known worker;
  v_worker worker;
  v_forgotten text[] := '{}';
begin
  select * into v_known from worker w where w.tenant = p_tenant and w.instance = p_instance;
  select n.agent into served_agent
    from (select p_tenant as tenant, u.agent, u.i from unnest(p_agents) with ordinality u(agent, i)) n
   where n.agent <> ':ALL_AGENTS' and not :IS_OPEN_TO_WORKERS order by n.i limit 1;
  if found then
    return next;
    return;
  end if;
  if v_known.lost is distinct from false then
    full_of := workers_full(p_tenant);
    if full_of is not null then
      return next;
      return;
    end if;
  end if;
  id := coalesce(v_known.id, p_id);
  is_new := v_known.id is null;
  insert into worker as w (id, tenant, instance, key, name, agents, slots, labels, version, runtime, lease_ms, heartbeat_ms,
                           registered_at, seen_at)
  values (coalesce(v_known.id, p_id), p_tenant, p_instance, p_key, p_name, p_agents, p_slots, p_labels, p_version, p_runtime,
          p_lease_ms, p_heartbeat_ms, v_now, v_now)
  on conflict on constraint worker_pkey do update
    set key = p_key, name = p_name, agents = p_agents, slots = p_slots, labels = p_labels, version = p_version,
        runtime = p_runtime, lease_ms = p_lease_ms, heartbeat_ms = p_heartbeat_ms, draining = false, lost = false,
        beat = w.beat + 1, registered_at = v_now, seen_at = v_now
  returning w.* into v_worker;
  if v_known.id is not null then v_forgotten := remember_worker_agents(v_now, p_tenant, v_known.agents); end if;
  perform save_worker_agents(coalesce(v_known.id, p_id), p_tenant, p_agents);
  perform worker_agents_changed(
    v_now, p_tenant, coalesce(v_known.agents, '{}') || p_agents || v_forgotten, coalesce(v_known.id, p_id));
  if v_known.lost is distinct from false then
    perform append_worker_notification(
      v_now, 'worker.registered', v_worker, null, case when v_known.lost then ':WORKER_BACK' end);
  end if;
  return next;
end $$;

-- Which limit keeps another live worker of this tenant out; null: none.
create function workers_full(p_tenant text) returns text language sql stable as $$
  select case when own < :TENANT_WORKERS_MIN then null
              when live >= :WORKERS_MAX then 'installation'
              when own >= :TENANT_WORKERS_MAX and exists (select 1 from tenant where not disabled offset 1) then 'tenant' end
    from (select count(*) as live, count(*) filter (where tenant = p_tenant) as own from worker where not lost) w
$$;

create function save_worker_agents(p_worker text, p_tenant text, p_agents text[]) returns void language plpgsql as $$
#variable_conflict use_column
begin
  delete from worker_agent where worker = p_worker;
  insert into worker_agent (tenant, agent, worker) select distinct p_tenant, a, p_worker from unnest(p_agents) a;
end $$;

-- Returns the agents that are forgotten instead.
create function remember_worker_agents(p_now bigint, p_tenant text, p_agents text[]) returns text[] language plpgsql as $$
#variable_conflict use_column
declare
  v_forgotten text[];
begin
  insert into worker_agent_seen (tenant, agent, at)
  select distinct p_tenant, a, p_now from unnest(p_agents) a where a <> ':ALL_AGENTS'
  on conflict (tenant, agent) do update set at = excluded.at;
  v_forgotten := array(
    select agent from worker_agent_seen where tenant = p_tenant order by at desc, agent offset :AGENTS_SEEN_MAX);
  if v_forgotten <> '{}' then
    delete from worker_agent_seen where tenant = p_tenant and agent = any (v_forgotten);
  end if;
  return v_forgotten;
end $$;

-- Lets a worker that is lost or gone no longer serve its agents.
create function forget_worker_agents(p_now bigint, p_worker text, p_tenant text, p_agents text[]) returns void
language plpgsql as $$
declare
  v_forgotten text[] := remember_worker_agents(p_now, p_tenant, p_agents);
begin
  perform save_worker_agents(p_worker, p_tenant, '{}');
  perform worker_agents_changed(p_now, p_tenant, p_agents || v_forgotten, p_worker);
end $$;

-- Signs of life do not take the write lock, as heartbeats of nodes do not. Rows are locked in a fixed order: several nodes may
-- write signs of the same worker.
create function renew_workers(p_now bigint, p_workers text[], p_polls boolean[]) returns table (id text, lost boolean)
language plpgsql as $$
#variable_conflict use_column
declare
  v_now bigint := coalesce(p_now, floor(extract(epoch from clock_timestamp()) * 1000)::bigint);
  v_polling text[] := array(select u.worker from unnest(p_workers, p_polls) u(worker, polls) where u.polls);
begin
  set local synchronous_commit = off;
  -- No join: such a plan, made while there are few workers, would read all of them when there are many.
  perform 1 from worker w where w.id = any (p_workers) order by w.id for update;
  return query
    update worker w
       set beat = w.beat + 1, seen_at = v_now, polled_at = case when w.id = any (v_polling) then v_now else w.polled_at end
     where w.id = any (p_workers) returning w.id, w.lost;
end $$;

-- Lets a worker that was lost serve its agents again. False: there are too many others.
create function revive_worker(p_now bigint, p_worker text) returns boolean language plpgsql as $$
#variable_conflict use_column
declare
  v_now bigint := take_write_lock(p_now);
  v_worker worker;
begin
  select * into v_worker from worker w where w.id = p_worker and w.lost;
  if not found then return true; end if;
  if workers_full(v_worker.tenant) is not null then return false; end if;
  update worker w set lost = false where w.id = p_worker and w.lost returning w.* into v_worker;
  perform save_worker_agents(p_worker, v_worker.tenant, v_worker.agents);
  perform worker_agents_changed(v_now, v_worker.tenant, v_worker.agents, p_worker);
  perform append_worker_notification(v_now, 'worker.registered', v_worker, null, ':WORKER_BACK');
  return true;
end $$;

create function mark_worker_lost(p_now bigint, p_worker text, p_beat bigint) returns text[] language plpgsql as $$
#variable_conflict use_column
declare
  v_now bigint := take_write_lock(p_now);
  v_worker worker;
  v_held bigint;
begin
  update worker w set lost = true where w.id = p_worker and w.beat = p_beat and not w.lost returning w.* into v_worker;
  if not found then return null; end if;
  select count(*) into v_held from lease l where l.node = p_worker;
  if not v_worker.draining or v_held > 0 then
    perform append_worker_notification(v_now, 'worker.lost', v_worker, v_held, ':SILENT_FOR' || v_worker.lease_ms || ' ms');
  end if;
  perform forget_worker_agents(v_now, p_worker, v_worker.tenant, v_worker.agents);
  return v_worker.agents;
end $$;

create function remove_worker(p_now bigint, p_tenant text, p_worker text) returns boolean language plpgsql as $$
#variable_conflict use_column
declare
  v_now bigint := take_write_lock(p_now);
  v_worker worker;
begin
  delete from worker w where w.id = p_worker and w.tenant = p_tenant and not exists (select 1 from lease l where l.node = p_worker)
  returning w.* into v_worker;
  if not found then return false; end if;
  delete from worker_minute where worker = p_worker;
  if not v_worker.lost then perform forget_worker_agents(v_now, p_worker, p_tenant, v_worker.agents); end if;
  return true;
end $$;

-- Returns attempts that the worker named before and has left out twice in a row, and a row of nulls if any began.
create function name_attempts(
  p_now bigint, p_worker text, p_hashes text[], p_usages json, p_all boolean)
returns table (seq bigint, token bigint) language plpgsql as $$
#variable_conflict use_column
declare
  v_now bigint;
  v_seqs bigint[];
  v_tokens bigint[];
begin
  -- While nothing changes, nothing is written.
  -- Looked up, here and below: a plan with joins, made while there are few attempts, would read all of them when there are many.
  perform 1 from lease l
   cross join lateral (select hash, unnamed_until, missed from worker_attempt where token = l.token and task_seq = l.task_seq offset 0) a
   where l.node = p_worker
     and ((a.hash = any (p_hashes) and (a.unnamed_until is not null or a.missed > 0 or p_usages is not null))
          or (p_all and a.unnamed_until is null and a.hash <> all (p_hashes)))
   limit 1;
  if not found then return; end if;
  v_now := take_write_lock(p_now);
  select array_agg(l.task_seq order by l.task_seq), array_agg(l.token order by l.task_seq) into v_seqs, v_tokens
    from lease l
   cross join lateral (select hash from worker_attempt where token = l.token and task_seq = l.task_seq offset 0) a
   where l.node = p_worker and l.state = 'assigned' and a.hash = any (p_hashes);
  if v_seqs is not null then
    perform append_in_waves(
      v_now, begin_attempts(v_now, array_fill(p_worker, array[cardinality(v_seqs)]), v_seqs, v_tokens, null, null, null), null,
      '{}', '{}', '{}', '{}', '{}', false);
    :PREEMPT
    return next;
  end if;
  update worker_attempt a set unnamed_until = null, missed = 0
    from lease l
   cross join lateral (select ctid as address from worker_attempt where token = l.token and task_seq = l.task_seq offset 0) o
   where l.node = p_worker and a.ctid = o.address and a.hash = any (p_hashes) and (a.unnamed_until is not null or a.missed > 0);
  if p_usages is not null then
    update worker_attempt a
       set input_tokens = greatest(coalesce(a.input_tokens, 0), u."inputTokens"),
           output_tokens = greatest(coalesce(a.output_tokens, 0), u."outputTokens"),
           context_tokens = coalesce(u."contextTokens", a.context_tokens),
           context_window = coalesce(u."contextWindow", a.context_window)
      from json_to_recordset(p_usages) as u(
             hash text, "inputTokens" bigint, "outputTokens" bigint, "contextTokens" bigint, "contextWindow" bigint)
     cross join lateral (select ctid as address from worker_attempt where hash = u.hash offset 0) o
     where a.ctid = o.address and a.worker = p_worker
       and exists (select 1 from lease l where l.task_seq = a.task_seq and l.token = a.token offset 0);
  end if;
  if p_all then
    return query
      with left_out as (
        update worker_attempt a set missed = a.missed + 1
          from lease l
         cross join lateral (select ctid as address from worker_attempt where token = l.token and task_seq = l.task_seq offset 0) o
         where l.node = p_worker and a.ctid = o.address and a.hash <> all (p_hashes) and a.unnamed_until is null
        returning a.task_seq, a.token, a.missed)
      select task_seq, token from left_out where missed >= 2 order by task_seq;
  end if;
end $$;

-- p_tokens: null, all attempts of the worker. p_max_lost: a task that was lost this often fails; null: the worker did not get them.
-- Then those that it has named stay, and the others leave no trace. p_recorded: the worker itself reported this end.
create function take_back(
  p_now bigint, p_worker text, p_tokens bigint[], p_limit integer, p_counted boolean, p_max_lost integer, p_error text,
  p_recorded boolean)
returns table (state text, id text, tenant text, agent text, lane text, token bigint) language plpgsql as $$
#variable_conflict use_column
declare
  v_now bigint := take_write_lock(p_now);
  v_seqs bigint[] := array(
    select task_seq from lease
     where node = p_worker and (p_tokens is null or token = any (p_tokens)) and (p_max_lost is not null or state = 'assigned')
     order by task_seq limit p_limit);
  v_alone bigint[];
  v_ended ended_attempt[];
begin
  if p_max_lost is not null then
    with lost as (
      update task t set losses = t.losses + 1
        from lease l cross join lateral (select ctid as address from task where seq = l.task_seq offset 0) a
       where l.task_seq = any (v_seqs) and t.ctid = a.address
      returning t.seq, t.losses, t.retry_count < t.max_retries_if_lost or not (p_counted and l.state = 'running') as rescuable)
    select array_agg(seq) into v_alone
      from lost where losses >= :ALONE_AFTER_LOSSES and losses < p_max_lost and rescuable;
  else
    select array_agg(t.seq) into v_alone from lease l
     cross join lateral (select seq, losses, retry_count, max_retries_if_lost from task where seq = l.task_seq offset 0) t
     where l.task_seq = any (v_seqs) and t.losses >= :ALONE_AFTER_LOSSES
       and (t.retry_count < t.max_retries_if_lost or not (p_counted and l.state = 'running'));
  end if;
  if v_alone is not null then perform move_to_alone(v_alone); end if;
  with gone as (
    delete from lease l using unnest(v_seqs) u(seq)
     cross join lateral (select losses, retry_count, max_retries_if_lost from task where seq = u.seq offset 0) t
     where l.task_seq = u.seq
    returning l.*, t.losses >= p_max_lost is true as lost, t.losses, p_counted and l.state = 'running' as is_retry,
              t.losses >= p_max_lost is not true
                and (t.retry_count < t.max_retries_if_lost or not (p_counted and l.state = 'running')) as rescuable)
  select array_agg(row(task_seq, task_seq, token, node, line, attempt, started_at,
                       case when rescuable then 'queued' else 'failed' end,
                       case when p_max_lost is not null then 'lost' end, rescuable and is_retry, null,
                       case when lost then 'lost ' || losses || case losses when 1 then ' time' else ' times' end else p_error end,
                       v_now, null, null, null, null, null, p_max_lost is not null)::ended_attempt)
    into v_ended from gone;
  if v_ended is null then return; end if;
  if p_recorded then
    update worker_attempt a set ended_at = v_now, recorded = true
      from unnest(v_ended) e
     cross join lateral (select ctid as address from worker_attempt where token = e.token and task_seq = e.task_seq offset 0) o
     where a.ctid = o.address;
  end if;
  perform end_attempts(v_now, v_ended);
  perform settle_moves(v_now, :RELEASED_MAX);
  :PREEMPT
  return query
    select e.state, t.id, n.tenant, n.agent, n.lane, e.token
      from unnest(v_ended) e
     cross join lateral (select tenant, agent, lane from line where id = e.line offset 0) n
     cross join lateral (select id from task where seq = e.task_seq offset 0) t order by e.task_seq;
end $$;

create function prune_workers(p_now bigint, p_kept_ms bigint, p_worker_kept_ms bigint, p_lost_max integer) returns void language plpgsql as $$
#variable_conflict use_column
declare
  v_now bigint := take_write_lock(p_now);
begin
  update worker_attempt a set ended_at = v_now
   where a.ended_at is null and not exists (select 1 from lease l where l.task_seq = a.task_seq and l.token = a.token);
  delete from worker_attempt where ended_at <= v_now - p_kept_ms;
  delete from worker_minute where minute <= v_now / 60000 - 10;
  delete from worker w
   where w.lost and not exists (select 1 from lease l where l.node = w.id)
     and (w.seen_at <= v_now - p_worker_kept_ms or w.id in (
           select s.id from (select id, row_number() over (partition by tenant order by seen_at desc, id collate "C") as n
                               from worker where lost) s
            where s.n > p_lost_max));
end $$;
