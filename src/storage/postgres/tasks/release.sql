-- Adds a release row for each of these tasks that has ended and has dependants. p_error: why they were cancelled
-- themselves, if a dependency of theirs was the reason.
create function add_releases(p_seqs bigint[], p_error text) returns void language plpgsql as $$
#variable_conflict use_column
begin
  insert into release (parent_seq, error)
  select t.seq, case when t.resting_state <> 'done'
                     then coalesce(p_error, 'dependency ' || t.id || ' ' || t.resting_state) end
    from unnest(p_seqs) with ordinality u(seq, ordinal)
   cross join lateral (select seq, id, resting_state, has_dependants, completed_at from task where seq = u.seq offset 0) t
   where t.has_dependants and t.completed_at is not null order by u.ordinal;
end $$;

-- Passes ends and retries on to up to p_limit dependants. Returns how many. Tenants get equal shares, those of a tenant go in
-- order: a tenant with very many dependants does not delay those of others.
create function release_dependants(p_now bigint, p_limit integer) returns integer language plpgsql as $$
#variable_conflict use_column
declare
  v_next record;
  v_tenant text;
  v_used integer;
  v_count integer;
  v_released integer := 0;
begin
  loop
    if not exists (select 1 from release) then return v_released; end if;
    exit when v_released >= p_limit;
    v_tenant := null;
    v_used := 0;
    for v_next in
      with looked as materialized (
        select r.*, coalesce((select t.tenant from task t where t.seq = r.parent_seq), '') as tenant
          from (select * from release order by seq limit :LOOKED_AT_MAX) r)
      select l.seq, l.parent_seq, l.error, l.after_seq, l.tenant,
             greatest((p_limit - v_released) / (select count(distinct tenant)::integer from looked), 1) as share
        from (select *, min(seq) over (partition by tenant) as first_seq from looked) l order by l.first_seq, l.seq
    loop
      exit when v_released >= p_limit;
      if v_next.tenant is distinct from v_tenant then
        v_tenant := v_next.tenant;
        v_used := 0;
      end if;
      continue when v_used >= v_next.share;
      v_count := release_row(p_now, v_next.seq, v_next.parent_seq, v_next.error, v_next.after_seq,
                             least(v_next.share - v_used, p_limit - v_released));
      v_used := v_used + v_count;
      v_released := v_released + v_count;
    end loop;
  end loop;
  -- Rare enough for a notification inside the transaction: any node may continue with the rest.
  perform pg_notify('rota', '{"from":"","signals":[{"kind":"release"}]}');
  return v_released;
end $$;

-- Processes one release row. Returns to how many dependants it was passed on, but at least 1: a row without dependants takes
-- time, too.
create function release_row(p_now bigint, p_seq bigint, p_parent bigint, p_error text, p_after bigint, p_limit integer)
returns integer language plpgsql as $$
#variable_conflict use_column
declare
  v_children bigint[] := array(
    select child_seq from dependency where parent_seq = p_parent and child_seq > p_after order by child_seq limit p_limit);
  v_waiting bigint[] := array(
    select seq from task where seq = any (v_children) and resting_state = 'waiting_dependency' order by seq);
begin
  if p_error like 'retried %' then
    perform bring_back(p_now, p_parent, v_children, p_error);
  elsif cardinality(v_waiting) > 0 and p_error is null then
    perform meet_dependency(p_now, v_waiting);
  elsif cardinality(v_waiting) > 0 then
    perform end_waiting(p_now, v_waiting, 'cancelled', p_error, true);
  end if;
  if cardinality(v_children) = p_limit then
    update release set after_seq = v_children[cardinality(v_children)] where seq = p_seq;
  else
    delete from release where seq = p_seq;
  end if;
  return greatest(cardinality(v_children), 1);
end $$;

-- A dependency of each of these tasks is done; tasks for which it was the last can start, or wait until they are due. Unmet
-- dependencies are counted rather than one subtracted: a task that was inserted after the end, or was retried, has never
-- counted that dependency.
create function meet_dependency(p_now bigint, p_seqs bigint[]) returns void language plpgsql as $$
#variable_conflict use_column
declare
  v_unmet integer[] := array(
    select case when t.dependencies = 1 then 0 else count_unmet(t.seq, t.dependencies) end
      from unnest(p_seqs) with ordinality u(seq, n)
     cross join lateral (select seq, dependencies from task where seq = u.seq offset 0) t order by u.n);
  -- Tasks that can start now and get a turn in their session.
  v_turns bigint[] := array(
    select t.seq from unnest(p_seqs, v_unmet) u(seq, unmet)
     cross join lateral (select seq, session, run_at from task where seq = u.seq offset 0) t
     where u.unmet = 0 and t.session is not null and (t.run_at > p_now) is not true order by t.seq);
  v_deltas queue_delta[];
  v_batches batch_delta[];
  v_tenants text[];
  v_states text[];
  v_asking text[];
begin
  if cardinality(v_turns) > 0 then
    update task t set deadline = greatest(p_now, t.run_at) + t.deadline_after_ms
     where t.seq = any (v_turns) and t.deadline_after_ms is not null;
    perform take_turns(p_now, v_turns);
  end if;
  with met as (
    update task t
       set unmet = u.unmet,
           resting_state = case when u.unmet > 0 then t.resting_state
                                when t.run_at > p_now then 'delayed' else 'queued' end,
           parked = case when u.unmet = 0 and (t.run_at > p_now) is not true then :PARKED_BY end,
           deadline = case when u.unmet > 0 or t.deadline_after_ms is null then t.deadline
                           else greatest(p_now, t.run_at) + t.deadline_after_ms end
      from unnest(p_seqs, v_unmet) u(seq, unmet)
     cross join lateral (select ctid as address from task where seq = u.seq offset 0) a
     where t.ctid = a.address and t.seq <> all (v_turns)
    returning t.seq, t.tenant, t.line, t.rank, t.resting_state, t.unmet, t.batch, t.parked,
              t.resting_state = 'queued' and t.parked is null as ready),
  readied as (
    insert into ready (line, rank, task_seq) select line, rank, seq from met where ready)
  select array_agg(case when ready then row(line, 0, 0, 0, 1, 0, null, rank, seq)::queue_delta
                        else row(line, 0, 0, 1, 0, 0, null, null, null)::queue_delta end)
           filter (where resting_state = 'queued'),
         array_agg(row(batch, (parked is distinct from 'batch')::integer, 0)::batch_delta)
           filter (where batch is not null and resting_state = 'queued'),
         array_agg(tenant) filter (where unmet = 0), array_agg(resting_state) filter (where unmet = 0),
         array_agg(seq::text) filter (where parked = 'asking')
    into v_deltas, v_batches, v_tenants, v_states, v_asking from met;
  if v_deltas is not null then perform apply_deltas(v_deltas); end if;
  if v_batches is not null then perform move_batches(v_batches); end if;
  if v_asking is not null then perform defer_work('keys', v_asking); end if;
  if v_tenants is not null then
    perform count_moves(v_tenants, array_fill('waiting_dependency'::text, array[cardinality(v_tenants)]), v_states);
  end if;
end $$;

create function release(p_now bigint, p_limit integer) returns table (released boolean, more boolean) language plpgsql as $$
declare
  v_now bigint := take_write_lock(p_now);
  v_released boolean := settle_moves(v_now, p_limit);
begin
  :PREEMPT
  return query select v_released, exists (select 1 from release);
end $$;

-- Stores the dependencies of new tasks, numbered from p_first on. Dependencies that had ended without being done cancel
-- them.
create function add_dependencies(p_forms json, p_form_of integer[], p_first bigint) returns void language plpgsql as $$
#variable_conflict use_column
declare
  v_wanted json[] := array(select j.depends_on from json_to_recordset(p_forms) as j(depends_on json));
  v_parents bigint[];
begin
  with asked as (
    select t.seq, t.tenant, d.id, u.n, d.ordinal
      from unnest(p_form_of) with ordinality u(form, n)
     cross join lateral json_array_elements_text(v_wanted[u.form]) with ordinality d(id, ordinal)
     -- Looked up: a plan made while there are few tasks would otherwise read all of them when there are many.
     cross join lateral (select seq, tenant from task where seq = p_first + u.n - 1 and resting_state <> 'rejected' offset 0) t),
  known as materialized (
    select a.seq as child_seq, p.seq as parent_seq, p.id, p.resting_state, a.n, a.ordinal
      from (select *, :PARENT_SEQ as parent_seq from asked) a
     cross join lateral (select seq, id, resting_state from task where seq = a.parent_seq and seq < a.seq offset 0) p),
  added as (insert into dependency (parent_seq, child_seq) select parent_seq, child_seq from known),
  doomed as (
    insert into release (parent_seq, error, after_seq)
    select parent_seq, 'dependency ' || id || ' ' || resting_state, child_seq - 1
      from known where resting_state in ('failed', 'cancelled', 'rejected') order by n, ordinal)
  select array_agg(distinct parent_seq) into v_parents from known;
  update task set has_dependants = true where seq = any (v_parents) and not has_dependants;
end $$;
