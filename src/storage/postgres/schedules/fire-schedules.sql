-- n: index within the call.
create type new_fire as (
  n integer, tenant text, id bigint, revision bigint, next_fire_at bigint, pauses text, while_disabled boolean);

create function fire_schedules(p_now bigint, p_fires json, p_runs json, p_bounds json)
returns table (fire integer, runs json, cancelled json) language plpgsql as $$
#variable_conflict use_column
declare
  v_now bigint := take_write_lock(p_now);
  v_fires new_fire[] := array(select f from json_populate_recordset(null::new_fire, p_fires) f order by f.n);
  v_runs new_run[] := array(select r from json_populate_recordset(null::new_run, p_runs) r order by r.n);
  v_fire new_fire;
  v_own new_run[];
begin
  if not order_matters(v_fires, v_runs) then
    return query select * from fire_group(v_now, v_fires, v_runs, false);
  else
    foreach v_fire in array v_fires loop
      v_own := array(select r from unnest(v_runs) r where r.fire = v_fire.n order by r.n);
      return query select * from fire_group(v_now, array[v_fire], v_own, order_matters(array[v_fire], v_own));
    end loop;
  end if;
  if p_bounds is not null then
    perform count_bounded(v_now, p_bounds, array(
      select t.seq from unnest(v_runs) r join task t on t.id = r.task ->> 'id' and :IS_OF_TENANT where r.status = 'running'));
  end if;
  if exists (select 1 from release) or :SESSIONS_DEFERRED or :BATCHES_DEFERRED or :KEYS_DEFERRED then
    perform settle_moves(v_now, :RELEASED_MAX);
  end if;
  :PREEMPT
end $$;

-- Whether a schedule is named twice, several due times of one share a row, a run ends another of this call, or several runs
-- are created of a schedule that may have to skip some.
create function order_matters(p_fires new_fire[], p_runs new_run[]) returns boolean language plpgsql stable as $$
#variable_conflict use_column
begin
  return (select count(*) > count(distinct id) from unnest(p_fires))
      or exists (
           select 1 from (select *, row_number() over (partition by fire order by n) as ordinal from unnest(p_runs)) r
            group by fire
           having count(*) filter (where :MAY_SHARE_ROW) > 1 or bool_or(replaces and ordinal > 1))
      or exists (
           select 1
             from (select schedule, max(waiting_max) as waiting_max, count(*) filter (where status = 'running') as running
                     from unnest(p_runs) group by fire, schedule having count(*) > 1) r
            cross join lateral (select open_runs from schedule where id = r.schedule offset 0) s
            where s.open_runs + r.running > r.waiting_max);
end $$;

create function fire_group(p_now bigint, p_fires new_fire[], p_runs new_run[], p_in_order boolean)
returns table (fire integer, runs json, cancelled json) language plpgsql as $$
#variable_conflict use_column
declare
  v_fires new_fire[];
  v_runs new_run[];
  v_run new_run;
  v_step record;
  v_written written_run[] := '{}';
  v_cancelled jsonb := '[]';
begin
  -- Before any run ends: the schedule may be waiting for that end.
  with named as materialized (
    select f.*, (select a.ctid from schedule a where a.id = f.id) as row from unnest(p_fires) f),
  moved as (
    update schedule s
       set next_fire_at = case when s.status = 'active' then f.next_fire_at end, revision = s.revision + 1
      from named f where s.ctid = f.row and (s.tenant = f.tenant) is true and s.revision = f.revision
       and (not f.while_disabled or coalesce((select t.disabled from tenant t where t.id = f.tenant), false))
    returning f.n)
  select array_agg(f) into v_fires from unnest(p_fires) f where f.n = any (array(select n from moved));
  if v_fires is null then return; end if;
  v_runs := array(select r from unnest(p_runs) r where r.fire = any (array(select f.n from unnest(v_fires) f)) order by r.n);
  if not p_in_order then
    select written, cancelled into v_written, v_cancelled from write_runs(p_now, v_runs);
  else
    foreach v_run in array v_runs loop
      select * into v_step from write_runs(p_now, array[v_run]);
      v_written := v_written || v_step.written;
      v_cancelled := v_cancelled || v_step.cancelled;
    end loop;
  end if;
  perform settle_fired(p_now, v_fires, v_runs);
  return query
    select f.n,
           coalesce((select json_agg(json_build_object('id', w.id, 'task', case when (w.task).seq is not null then w.task end)
                                     order by w.n)
                       from unnest(v_written) w where w.fire = f.n), '[]'),
           coalesce((select json_agg(c.task order by c.ordinal)
                       from jsonb_array_elements(v_cancelled) with ordinality c(task, ordinal)
                      where (c.task -> 'schedule')::bigint = f.id), '[]')
      from unnest(v_fires) f;
end $$;

-- After all of their runs are written: pauses some, and fails a one-time schedule that missed its due time.
create function settle_fired(p_now bigint, p_fires new_fire[], p_runs new_run[]) returns void language plpgsql as $$
#variable_conflict use_column
declare
  v_spent bigint[];
  v_paused bigint[];
  v_reasons text[];
  v_held bigint[];
begin
  with named as materialized (select (select a.ctid from schedule a where a.id = f.id) as row from unnest(p_fires) f),
  spent as (
    update schedule s
       set next_fire_at = null,
           status = case when s.kind = 'once' then s.status else 'completed' end,
           held = s.held and s.kind = 'once',
           paused_reason = case when s.kind = 'once' then s.paused_reason end,
           updated_at = case when s.kind = 'once' or s.status = 'completed' then s.updated_at else p_now end
      from named f where s.ctid = f.row and s.run_count >= s.max_runs
    returning s.id, s.kind)
  select coalesce(array_agg(id) filter (where kind <> 'once'), '{}') into v_spent from spent;
  select array_agg(id order by n), array_agg(pauses order by n), coalesce(array_agg(id) filter (where while_disabled), '{}')
    into v_paused, v_reasons, v_held from unnest(p_fires)
   where pauses is not null and id <> all (v_spent);
  if v_paused is not null then
    update schedule s
       set status = 'paused', next_fire_at = null, held = s.id = any (v_held), updated_at = p_now, paused_reason = u.reason
      from unnest(v_paused, v_reasons) u(id, reason) where s.id = u.id;
    perform append_schedule_notifications(p_now, 'schedule.paused', v_paused, v_reasons);
  end if;
  update schedule s set status = 'completed', held = false, updated_at = p_now
    from (select (select a.ctid from schedule a where a.id = f.id) as row from unnest(p_fires) f
           where f.pauses is null and f.next_fire_at is null) f
   where s.ctid = f.row and s.kind = 'recurring' and s.status = 'active' and s.next_fire_at is null;
  if not exists (select 1 from unnest(p_runs) where status = 'missed') then return; end if;
  update schedule s
     set last_status = 'missed', last_error = l.reason,
         status = case when s.next_fire_at is null and s.open_runs = 0 then 'failed' else s.status end,
         held = s.held and not (s.next_fire_at is null and s.open_runs = 0),
         paused_reason = case when not (s.next_fire_at is null and s.open_runs = 0) then s.paused_reason end,
         updated_at = case when s.next_fire_at is null and s.open_runs = 0 then p_now else s.updated_at end
    from (select distinct on (r.fire) r.status, r.reason, (select a.ctid from schedule a where a.id = r.schedule) as row
            from unnest(p_runs) r join unnest(p_fires) f on f.n = r.fire and f.pauses is null order by r.fire, r.n desc) l
   where l.status = 'missed' and s.ctid = l.row and s.kind = 'once';
end $$;
