create function add_bulk(
  p_now bigint, p_id text, p_tenant text, p_action text, p_filter text, p_selection text, p_ids text, p_max_tasks bigint,
  p_matched bigint, p_last_seq bigint, p_cursor bigint, p_by text, p_requested_at bigint, p_running_max bigint,
  p_kept_max bigint)
returns boolean language plpgsql as $$
#variable_conflict use_column
begin
  perform take_write_lock(p_now);
  if (select count(*) from bulk where tenant = p_tenant and state = 'running') >= p_running_max then return false; end if;
  delete from bulk where id = any (array(
    select b.id from bulk b where b.tenant = p_tenant and b.state <> 'running'
     order by b.requested_at desc, b.id desc offset p_kept_max));
  insert into bulk (id, tenant, action, filter, selection, ids, max_tasks, matched, last_seq, cursor, requested_by, requested_at)
  values (p_id, p_tenant, p_action, p_filter, p_selection, p_ids, p_max_tasks, p_matched, p_last_seq, p_cursor, p_by,
          p_requested_at);
  return true;
end $$;

create function abort_bulk(p_now bigint, p_tenant text, p_id text) returns void language plpgsql as $$
#variable_conflict use_column
begin
  perform take_write_lock(p_now);
  update bulk set state = 'aborted', ids = null, lease_until = null
   where tenant = p_tenant and id = p_id and state = 'running';
end $$;

-- Returns the claimed action. If none is free: one row of nulls with retry_ms. If none runs: no row.
create function claim_bulk(p_now bigint, p_lease_ms bigint)
returns table (id text, tenant text, action text, filter text, selection text, ids text, max_tasks bigint, matched bigint,
               last_seq bigint, cursor bigint, requested_by text, requested_at bigint, state text, done bigint, failed bigint,
               skipped bigint, retry_ms bigint)
language plpgsql as $$
#variable_conflict use_column
declare
  v_now bigint;
  v_id text;
begin
  if not exists (select 1 from bulk b where b.state = 'running') then return; end if;
  v_now := take_write_lock(p_now);
  -- A lease that ends later than possible was given before the clock was set back.
  select b.id into v_id from bulk b
   where b.state = 'running' and (b.lease_until is null or b.lease_until <= v_now or b.lease_until > v_now + p_lease_ms)
   order by (select max(o.served) from bulk o where o.state = 'running' and o.tenant = b.tenant), b.served, b.requested_at, b.id
   limit 1;
  if v_id is null then
    select min(b.lease_until) - v_now into retry_ms from bulk b where b.state = 'running';
    if retry_ms is not null then return next; end if;
    return;
  end if;
  return query
    update bulk b set lease_until = v_now + p_lease_ms,
                      served = (select max(o.served) + 1 from bulk o where o.state = 'running')
     where b.id = v_id
    returning b.id, b.tenant, b.action, b.filter, b.selection, b.ids, b.max_tasks, b.matched, b.last_seq, b.cursor,
              b.requested_by, b.requested_at, b.state, b.done, b.failed, b.skipped, 0::bigint;
end $$;

-- Executes one slice. No row: another node was faster, or the action has ended. Otherwise a row of nulls, and one for each
-- cancelled task.
create function step_bulk(p_now bigint, p_tenant text, p_id text, p_cursor bigint, p_next bigint, p_ids text[])
returns table (id text, token bigint, agent text, lane text) language plpgsql as $$
#variable_conflict use_column
declare
  v_now bigint := take_write_lock(p_now);
  v_bulk bulk;
  v_found bigint;
  v_done bigint := 0;
  v_task text;
  v_was text;
  v_seqs bigint[];
begin
  select * into v_bulk from bulk b
   where b.tenant = p_tenant and b.id = p_id and b.state = 'running' and b.cursor = p_cursor;
  if not found then return; end if;
  select count(*) into v_found from task t where t.id = any (p_ids) and :IS_OF_TENANT;
  if v_bulk.action = 'cancel' then
    return query
      select c.id, c.token, c.agent, c.lane from cancel_tasks(v_now, p_tenant, p_ids, null) c where c.was is null;
    get diagnostics v_done = row_count;
  elsif v_bulk.action = 'retry' then
    for v_task in
      select t.id from task t
       where t.id = any (p_ids) and :IS_OF_TENANT and t.completed_at <= v_bulk.requested_at
       order by array_position(p_ids, t.id)
    loop
      select r.was into v_was from retry_task(v_now, p_tenant, v_task, false, null) r;
      if found and v_was is null then v_done := v_done + 1; end if;
    end loop;
  else
    -- Events have their lane and agent from the task, so they must be counted before it is deleted.
    while (select r.more from roll_up(v_now, :ROLLUP_SLICE_OF_PRUNE) r) loop end loop;
    v_seqs := array(
      select t.seq from task t
       where t.id = any (p_ids) and :IS_OF_TENANT and t.completed_at <= v_bulk.requested_at
         and not exists (select 1 from dependency d join task c on c.seq = d.child_seq
                          where d.parent_seq = t.seq and c.completed_at is null)
         and (t.batch is null or (select b.completed_at is null or b.completed_at > v_bulk.requested_at
                                    from batch b where b.id = t.batch) is not true)
         and not exists (select 1 from delivery d where d.task_seq = t.seq and d.status = 'pending'));
    if cardinality(v_seqs) > 0 then v_done := delete_ended(v_now, v_seqs, 0, 0, true); end if;
  end if;
  update bulk b
     set cursor = coalesce(p_next, b.cursor), lease_until = null, done = b.done + v_done,
         failed = b.failed + cardinality(p_ids) - v_found, skipped = b.skipped + v_found - v_done,
         state = case when p_next is null then 'done' else b.state end,
         ids = case when p_next is not null then b.ids end
   where b.id = p_id;
  id := null;
  token := null;
  return next;
end $$;
