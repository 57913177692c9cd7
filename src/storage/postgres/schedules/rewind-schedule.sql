create type rewound_row as (id bigint, first_due_at bigint, due_at bigint, moments integer);

create function rewind_schedule(
  p_now bigint, p_tenant text, p_id bigint, p_revision bigint, p_rows json, p_missed json, p_next_fire_at bigint, p_reopens boolean)
returns boolean language plpgsql as $$
#variable_conflict use_column
declare
  v_now bigint := take_write_lock(p_now);
  v_missed bigint[];
  v_rows rewound_row[] := array(select r from json_populate_recordset(null::rewound_row, p_rows) r);
begin
  perform 1 from schedule s where s.id = p_id and (s.tenant = p_tenant) is true and s.revision = p_revision;
  if not found then return false; end if;
  if exists (
    select 1 from unnest(v_rows) w
     where not exists (
       select 1 from run r where r.id = w.id and r.schedule = p_id and not r.forced and r.due_at > v_now)) then
    return false;
  end if;
  -- Deletes first: a row that stays may get the due time of a deleted one.
  delete from run where id = any (array(select w.id from unnest(v_rows) w where w.moments = 0));
  update run r set first_due_at = w.first_due_at, due_at = w.due_at, moments = w.moments
    from unnest(v_rows) w where r.id = w.id and w.moments > 0;
  with added as (
    insert into run (id, tenant, schedule, agent, due_at, first_due_at, moments, forced, status, reason, completed_at)
    select nextval('run_id'), s.tenant, s.id, s.agent, m.due_at, m.first_due_at, m.moments, false, 'missed', m.reason, v_now
      from schedule s cross join json_populate_recordset(null::new_run, p_missed) m where s.id = p_id order by m.n
    returning id)
  select array_agg(id order by id) into v_missed from added;
  if v_missed is not null then perform append_run_notifications(v_now, v_missed); end if;
  update schedule s
     set status = case when p_reopens then 'active' else s.status end,
         updated_at = case when p_reopens then v_now else s.updated_at end,
         last_error = case when p_reopens and s.last_status = 'missed' then null else s.last_error end,
         last_status = case when p_reopens and s.last_status = 'missed' then null else s.last_status end,
         next_fire_at = case when p_reopens or s.status = 'active' then p_next_fire_at end,
         revision = s.revision + 1,
         last_due_at = (select max(r.due_at) from run r where r.schedule = p_id and not r.forced)
   where s.id = p_id;
  return true;
end $$;
