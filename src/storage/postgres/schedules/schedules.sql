-- No row: the tenant has p_max schedules that are not over. p_max null: no limit.
create function create_schedule(p_now bigint, p_schedule json, p_max integer, p_maker json) returns setof schedule language plpgsql as $$
#variable_conflict use_column
declare
  v_now bigint := take_write_lock(p_now);
begin
  return query
    select s.* from schedule s where s.tenant = p_schedule ->> 'tenant' and s.source = p_schedule ->> 'source';
  if found then return; end if;
  perform check_maker(p_schedule ->> 'tenant', p_maker);
  if not has_room(p_schedule ->> 'tenant', p_max) then return; end if;
  return query
    insert into schedule (:DEFINED, tenant, source, next_fire_at, provenance, maker_key, maker_agent, created_at, updated_at)
    select :DEFINED, tenant, source, next_fire_at, provenance, maker_key, maker_agent, v_now, v_now
      from json_to_record(p_schedule) as j(:TYPED, tenant text, source text, next_fire_at bigint, provenance text,
                                           maker_key text, maker_agent text)
    returning *;
end $$;

-- Whether a tenant may have another schedule that is active or paused. The caller holds the write lock, so that this is
-- still true when it creates the schedule.
create function has_room(p_tenant text, p_max integer) returns boolean language plpgsql as $$
begin
  if p_max is null then return true; end if;
  return (select count(*) from (select 1 from schedule where tenant = p_tenant and status = 'active' limit p_max) a)
       + (select count(*) from (select 1 from schedule where tenant = p_tenant and status = 'paused' limit p_max) p) < p_max;
end $$;

-- Raises an exception if the maker of a schedule has as many active and paused ones as it may. p_maker null: no limit.
create function check_maker(p_tenant text, p_maker json) returns void language plpgsql as $$
#variable_conflict use_column
declare
  v_max integer := (p_maker ->> 'max')::integer;
  v_id text := p_maker ->> 'id';
  v_found bigint[];
begin
  if p_maker is null then return; end if;
  v_found := case p_maker ->> 'by'
    when 'key' then array(
      select id from schedule where tenant = p_tenant and maker_key = v_id and status in ('active', 'paused') order by id limit v_max)
    when 'agent' then array(
      select id from schedule where tenant = p_tenant and maker_agent = v_id and status in ('active', 'paused') order by id limit v_max)
    else array(
      select id from schedule where tenant = p_tenant and status in ('active', 'paused') order by id limit v_max) end;
  if cardinality(v_found) < v_max then return; end if;
  raise exception 'the maker has too many schedules' using errcode = ':BOUND_EXCEEDED',
    detail = json_build_object('limit', p_maker, 'oldest', v_found[1 : :OLDEST_NAMED]);
end $$;

create function pause_schedules_of_key(p_now bigint, p_tenant text, p_key text, p_reason text, p_limit integer)
returns integer language plpgsql as $$
#variable_conflict use_column
declare
  v_now bigint := take_write_lock(p_now);
  v_ids bigint[] := array(
    select id from schedule where tenant = p_tenant and maker_key = p_key and status = 'active' order by id limit p_limit);
begin
  if cardinality(v_ids) = 0 then return 0; end if;
  update schedule set status = 'paused', next_fire_at = null, held = false, paused_reason = p_reason, revision = revision + 1,
                      updated_at = v_now
   where id = any (v_ids);
  perform append_schedule_notifications(v_now, 'schedule.paused', v_ids, array_fill(p_reason, array[cardinality(v_ids)]));
  return cardinality(v_ids);
end $$;

create function update_schedule(
  p_now bigint, p_tenant text, p_id bigint, p_revision bigint, p_changes jsonb, p_reason text,
  p_unless_due boolean, p_max integer, p_maker json)
returns table (is_full boolean, saved schedule) language plpgsql as $$
#variable_conflict use_column
declare
  v_now bigint := take_write_lock(p_now);
  v_was text;
begin
  select s.status into v_was from schedule s
   where s.id = p_id and :IS_OF_TENANT and s.revision = p_revision
     and not (p_unless_due and coalesce(s.next_fire_at <= v_now, false));
  if not found then return; end if;
  is_full := false;
  if v_was in ('completed', 'failed') and coalesce(p_changes ->> 'status', v_was) in ('active', 'paused') then
    perform check_maker(p_tenant, p_maker);
    is_full := not has_room(p_tenant, p_max);
  end if;
  if is_full then
    return next;
    return;
  end if;
  update schedule s
     set :CHANGED,
         next_fire_at = case when coalesce(p_changes ->> 'status', s.status) <> 'active' then null
                             when p_changes ? 'next_fire_at' then (p_changes ->> 'next_fire_at')::bigint
                             else s.next_fire_at end,
         held = s.held and not p_changes ? 'status',
         -- A change of the status sets the reason: the given one for a pause, otherwise none.
         paused_reason = case when not p_changes ? 'status' then s.paused_reason
                              when p_changes ->> 'status' = 'paused' then p_reason end,
         consecutive_failures = case when p_changes ->> 'status' = 'active' then 0 else s.consecutive_failures end,
         revision = s.revision + 1,
         updated_at = v_now
   where s.id = p_id
  returning s.* into saved;
  if (saved).status = 'paused' and v_was <> 'paused' then
    perform append_schedule_notifications(v_now, 'schedule.paused', array[p_id], array[p_reason]);
  end if;
  return next;
end $$;

create function delete_schedule(p_now bigint, p_tenant text, p_id bigint, p_spares_running boolean, p_limit integer)
returns table (cancelled json, more boolean) language plpgsql as $$
#variable_conflict use_column
declare
  v_now bigint := take_write_lock(p_now);
  v_deleted integer;
begin
  perform 1 from schedule s where s.id = p_id and :IS_OF_TENANT;
  if not found then return; end if;
  -- + 0: a plan made while there are few runs would otherwise read all of them in order when there are many.
  cancelled := cancel_open_tasks(v_now, array(
    select o.seq from (:OPEN_TASKS) o
     where not (p_spares_running and exists (select 1 from lease l where l.task_seq = o.seq)) order by o.run + 0), ':SCHEDULE_DELETED');
  perform settle_moves(v_now, :RELEASED_MAX);
  :PREEMPT
  more := false;
  if p_limit is not null then
    delete from run where id = any (array(
      select r.id from run r where r.schedule = p_id and r.status <> 'running' order by r.id + 0 limit p_limit));
    get diagnostics v_deleted = row_count;
    more := v_deleted = p_limit;
  end if;
  if more then
    -- It does not fire while the rest of its runs are deleted, even if that never finishes.
    update schedule s set status = 'paused', next_fire_at = null, paused_reason = ':SCHEDULE_DELETED', revision = s.revision + 1
     where s.id = p_id and (s.status = 'active') is true;
  else
    perform append_schedule_notifications(v_now, 'schedule.canceled', array[p_id], null);
    perform remove_schedules(array[p_id]);
  end if;
  return next;
end $$;

-- Together with their runs.
create function remove_schedules(p_ids bigint[]) returns void language plpgsql as $$
begin
  delete from run where schedule = any (p_ids);
  delete from schedule where id = any (p_ids);
end $$;
