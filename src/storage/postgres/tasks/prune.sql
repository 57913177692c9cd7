create function prune(p_now bigint, p_retention_ms bigint, p_rejected_max bigint, p_limit integer)
returns table (tasks integer, more boolean) language plpgsql as $$
#variable_conflict use_column
declare
  v_now bigint := take_write_lock(p_now);
  v_cutoff bigint := v_now - p_retention_ms;
  v_latest bigint := v_now + p_retention_ms;
  v_is_counted boolean := count_before_prune(v_now, v_cutoff, v_latest);
  v_last bigint;
  v_events integer;
  v_seqs bigint[];
  v_tasks integer := 0;
  v_rejected integer := 0;
  v_excess record;
begin
  -- If a power failure undoes this, it is done again.
  set local synchronous_commit = off;
  -- A row of events is deleted whole, so a slice can exceed its limit by one row. Rows from a distant future were written
  -- while the clock was wrong and must not protect everything behind them. Rows from the near future were written just
  -- before the clock was corrected, and are new.
  with oldest as (
    select last_seq, count, at, task_seqs, sum(count) over (order by last_seq) as upto
      from event order by last_seq limit p_limit),
  past as (
    select * from oldest
     where v_is_counted and upto - count < p_limit
       and last_seq < coalesce((select min(last_seq) from oldest where at >= v_cutoff and at <= v_latest), 9e18))
  select max(last_seq), coalesce(sum(count), 0)::integer,
         (select array_agg(distinct seq) from past, unnest(task_seqs) seq)
    into v_last, v_events, v_seqs from past;
  if v_events > 0 then
    insert into high_water (name, value) values ('event', v_last)
    on conflict (name) do update set value = greatest(high_water.value, excluded.value);
    delete from event where last_seq <= v_last;
    v_tasks := delete_ended(v_now, with_siblings(v_seqs, v_cutoff, v_latest), v_cutoff, v_latest, false);
    delete from task_span where last_seq < coalesce((select min(seq) from task), 9000000000000000);
  end if;
  for v_excess in
    select tenant, tasks from tally where state = 'rejected' and tasks > p_rejected_max order by tenant
  loop
    exit when v_rejected >= p_limit;
    v_rejected := v_rejected + delete_ended(v_now, array(
      select t.seq from task t where t.tenant = v_excess.tenant and t.listed_state = 'rejected'
         and (not t.has_dependants or not :IS_WAITED_FOR)
         -- It is counted when its batch ends, and may carry the webhook delivery of the batch.
         and (t.batch is null or (select b.completed_at is null from batch b where b.id = t.batch) is not true)
         and (select d.seq from delivery d where d.task_seq = t.seq and d.status = 'pending' limit 1) is null
       order by t.seq limit least(v_excess.tasks - p_rejected_max, p_limit - v_rejected)), 9e18::bigint, v_latest, false);
  end loop;
  perform prune_bounded(v_now, v_cutoff, p_limit);
  return query select v_tasks + v_rejected, not v_is_counted or v_events >= p_limit or v_rejected = p_limit;
end $$;

-- These tasks, and all other tasks of those batches of theirs that have expired: they are deleted together. Each batch is
-- read once, and its tasks are listed only if they can be deleted: the log may name any number of tasks of a batch that
-- stays.
create function with_siblings(p_seqs bigint[], p_cutoff bigint, p_latest bigint) returns bigint[] language plpgsql as $$
#variable_conflict use_column
declare
  v_batches text[] := array(
    select distinct t.batch from task t
     where t.seq = any (p_seqs) and t.batch is not null and not :IS_KEPT_BY_BATCH);
begin
  if cardinality(v_batches) = 0 then return p_seqs; end if;
  return array(select unnest(p_seqs) union select seq from task where batch = any (v_batches));
end $$;

-- Deletes those of these tasks that ended before the cutoff, that no open task depends on and that no batch keeps, and then
-- the dependencies that were kept only for them. p_any: deletes exactly these, whatever keeps them.
create function delete_ended(p_now bigint, p_seqs bigint[], p_cutoff bigint, p_latest bigint, p_any boolean) returns integer
language plpgsql as $$
#variable_conflict use_column
declare
  v_gone bigint[];
  v_tenants text[];
  v_agents text[];
  v_states text[];
  v_batches text[];
  v_sessions bigint[];
  v_children bigint[];
  v_parents bigint[];
  v_done bigint[];
  v_unsent_by text[];
  v_unsent_to text[];
  v_deleted integer := 0;
begin
  loop
    with gone as (
      delete from task t
       where t.seq = any (p_seqs)
         and (p_any or ((t.completed_at < p_cutoff or t.completed_at > p_latest)
                        and (not t.has_dependants or not :IS_WAITED_FOR)
                        and not :IS_KEPT_BY_BATCH))
      returning t.seq, t.tenant, t.agent, t.resting_state, t.batch, t.session, t.dependencies, t.has_dependants),
    tries as (delete from attempt a using gone where a.task_seq = gone.seq),
    callbacks as (
      delete from delivery d using gone where d.task_seq = gone.seq returning d.tenant, d.host, d.due_at),
    keys as (delete from idempotency_key k using gone where k.task_seq = gone.seq),
    tokens as (delete from counted_tokens c using gone where c.task_seq = gone.seq)
    select array_agg(seq), array_agg(tenant), array_agg(agent), array_agg(resting_state),
           array_agg(distinct batch) filter (where batch is not null),
           array_agg(distinct session) filter (where session is not null), array_agg(seq) filter (where dependencies > 0),
           array_agg(seq) filter (where has_dependants), array_agg(seq) filter (where has_dependants and resting_state = 'done'),
           (select array_agg(tenant) from callbacks where due_at is not null),
           (select array_agg(host) from callbacks where due_at is not null)
      into v_gone, v_tenants, v_agents, v_states, v_batches, v_sessions, v_children, v_parents, v_done,
           v_unsent_by, v_unsent_to
      from gone;
    exit when v_tenants is null;
    -- A separate statement: it sees what was written while the one above waited for the writer.
    delete from task_log where task_seq = any (v_gone);
    if v_unsent_by is not null then perform refresh_receivers(p_now, v_unsent_by, v_unsent_to); end if;
    if v_batches is not null then perform delete_empty_batches(v_batches); end if;
    if v_sessions is not null then perform delete_empty_sessions(v_sessions); end if;
    -- Dependants of a deleted task that was done have one dependency less if they are retried: it was met.
    if v_done is not null then
      -- By address: a plan made while there are few tasks would otherwise read all of them when there are many.
      update task t set dependencies = t.dependencies - c.met, unmet = least(t.unmet, t.dependencies - c.met)
        from (select child_seq, count(*)::integer as met from dependency where parent_seq = any (v_done) group by child_seq) m
       cross join lateral (select ctid as address, m.met from task where seq = m.child_seq offset 0) c
       where t.ctid = c.address;
    end if;
    delete from dependency where parent_seq = any (v_parents);
    -- An agent without tasks loses its queues, so that short-lived agents do not pile up.
    delete from line n using (select distinct tenant, agent from unnest(v_tenants, v_agents) u(tenant, agent)) g
     where n.tenant = g.tenant and n.agent = g.agent
       and not exists (select 1 from task t where t.tenant = g.tenant and t.agent = g.agent);
    perform delete_empty_tenants(v_tenants);
    perform count_tasks(v_tenants, v_states, array_fill(-1, array[cardinality(v_states)]));
    v_deleted := v_deleted + cardinality(v_states);
    exit when v_children is null;
    with cut as (delete from dependency where child_seq = any (v_children) returning parent_seq)
    select array_agg(distinct parent_seq) into p_seqs from cut;
    exit when p_seqs is null or p_any;
  end loop;
  return v_deleted;
end $$;

-- The same for tenants.
create function delete_empty_tenants(p_tenants text[]) returns void language plpgsql as $$
#variable_conflict use_column
begin
  with gone as (
    delete from tenant_line t using (select distinct tenant from unnest(p_tenants) u(tenant)) g
     where t.tenant = g.tenant and not exists (select 1 from line n where n.tenant = g.tenant)
    returning t.lane)
  update lane l set tenants = l.tenants - g.tenants
    from (select lane, count(*)::integer as tenants from gone group by lane) g where l.name = g.lane;
end $$;
