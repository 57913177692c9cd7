create function create_tenant(p_now bigint, p_id text, p_name text, p_limits json)
returns table (taken text, saved tenant) language plpgsql as $$
declare
  v_now bigint := take_write_lock(p_now);
begin
  if exists (select 1 from tenant where id = p_id) then
    taken := 'id';
  elsif exists (select 1 from tenant where name = p_name) then
    taken := 'name';
  else
    insert into tenant (id, name, max_queued, max_inflight, max_schedules, max_sessions, max_streams, max_agents,
                        max_stored_bytes, created_at, updated_at)
    values (p_id, p_name, (p_limits ->> 'maxQueued')::integer, (p_limits ->> 'maxInflight')::integer,
            (p_limits ->> 'maxSchedules')::integer, (p_limits ->> 'maxSessions')::integer, (p_limits ->> 'maxStreams')::integer,
            (p_limits ->> 'maxAgents')::integer, (p_limits ->> 'maxStoredBytes')::bigint, v_now, v_now);
    perform keep_stored_bytes(p_id);
    saved := bound_tenant(v_now, p_id);
  end if;
  return next;
end $$;

create function update_tenant(p_now bigint, p_id text, p_name text, p_limits json)
returns table (taken text, saved tenant) language plpgsql as $$
declare
  v_now bigint := take_write_lock(p_now);
begin
  if not exists (select 1 from tenant where id = p_id and not deleting) then return; end if;
  if exists (select 1 from tenant where name = p_name and id <> p_id) then
    taken := 'name';
  else
    update tenant t
       set name = coalesce(p_name, t.name), max_queued = :GIVEN_MAX_QUEUED,
           max_inflight = :GIVEN_MAX_INFLIGHT, max_schedules = :GIVEN_MAX_SCHEDULES,
           max_sessions = :GIVEN_MAX_SESSIONS, max_streams = :GIVEN_MAX_STREAMS, max_agents = :GIVEN_MAX_AGENTS,
           max_stored_bytes = :GIVEN_MAX_STORED_BYTES, updated_at = v_now
     where t.id = p_id;
    perform keep_stored_bytes(p_id);
    saved := bound_tenant(v_now, p_id);
  end if;
  return next;
end $$;

create function set_disabled(p_now bigint, p_id text, p_disabled boolean) returns setof tenant language plpgsql as $$
declare
  v_now bigint := take_write_lock(p_now);
begin
  if not exists (select 1 from tenant where id = p_id and (p_disabled or not deleting)) then return; end if;
  -- Admission does not count waiting tasks of a disabled tenant.
  update lane l set exempt = l.exempt + case when p_disabled then t.counted else -t.counted end
    from (select lane, waiting - exempt as counted from tenant_line where tenant = p_id) t
   where l.name = t.lane and exists (select 1 from tenant where id = p_id and disabled <> p_disabled);
  update tenant set disabled = p_disabled, updated_at = v_now where id = p_id;
  if found then return next bound_tenant(v_now, p_id); end if;
end $$;

-- Applies new limits: copies them to the rows that read them, and rechecks lanes, because slots that its tasks wait for may
-- be free now, or gone.
create function bound_tenant(p_now bigint, p_id text) returns tenant language plpgsql as $$
#variable_conflict use_column
declare
  v_tenant tenant;
begin
  select * into v_tenant from tenant where id = p_id;
  -- Not startable for now: a disabled tenant never is.
  update tenant_line set max_inflight = v_tenant.max_inflight, disabled = v_tenant.disabled, startable = false
   where tenant = p_id;
  perform refresh_tenants(array[p_id]);
  perform refresh_turns(p_now, array[p_id]);
  if apply_second_tenant() then
    perform defer_work('lanes_to_recheck', array(select name from lane));
  else
    perform defer_work('lanes_to_recheck', array(select lane from tenant_line where tenant = p_id));
  end if;
  :PREEMPT_AT_P_NOW
  return v_tenant;
end $$;

-- Deletes a slice of what a tenant owns, and the tenant itself with the last slice. Open tasks are cancelled first, so that
-- every counter is right again.
create function delete_tenant(p_now bigint, p_id text, p_limit integer) returns table (cancelled json, more boolean)
language plpgsql as $$
#variable_conflict use_column
declare
  v_now bigint := take_write_lock(p_now);
  v_seqs bigint[];
begin
  -- Stored bytes are not counted meanwhile: that would leave rows behind.
  perform 1 from high_water where name = 'rollup' for update;
  -- API keys are created without the write lock: a caller that creates one waits here, and then finds no tenant.
  perform 1 from tenant where id = p_id for update;
  if not found then return; end if;
  perform set_disabled(v_now, p_id, true);
  update tenant set deleting = true where id = p_id and not deleting;
  delete from api_key where tenant = p_id;
  v_seqs := array(select seq from task where tenant = p_id order by agent, seq limit p_limit);
  cancelled := cancel_open_tasks(v_now, array(
    select t.seq from task t where t.seq = any (v_seqs) and t.completed_at is null order by t.seq), 'tenant deleted');
  perform settle_moves(v_now, :RELEASED_MAX);
  :PREEMPT
  perform delete_ended(v_now, v_seqs, null, null, true);
  more := cardinality(v_seqs) = p_limit or delete_other(p_id, p_limit);
  if not more then
    delete from line where tenant = p_id;
    perform delete_empty_tenants(array[p_id]);
    delete from tally where tenant = p_id;
    delete from webhook_secret where tenant = p_id;
    delete from delivery_turn where tenant = p_id;
    delete from worker_minute m using worker w where w.tenant = p_id and m.worker = w.id;
    delete from worker where tenant = p_id;
    delete from worker_agent where tenant = p_id;
    delete from worker_agent_seen where tenant = p_id;
    -- Instead of the names of its agents: nodes drop all agents of the tenant.
    delete from agent_change where tenant = p_id;
    insert into agent_change (seq, tenant, agent) values (nextval('agent_change_seq'), p_id, '');
    delete from tenant where id = p_id;
    perform keep_stored_bytes(p_id);
  end if;
  return next;
end $$;

-- Deletes a slice of what belongs to no task. Returns whether there may be more.
create function delete_other(p_tenant text, p_limit integer) returns boolean language plpgsql as $$
declare
  v_deleted integer;
begin
  -- A number without an entry would mean that the database was restored, so the number, the type and the time stay.
  update event set tenant = '', task_seqs = '{}', data = null
   where last_seq = any (array(select e.last_seq from event e where e.tenant = p_tenant limit p_limit));
  get diagnostics v_deleted = row_count;
  if v_deleted = p_limit then return true; end if;
  delete from session where id = any (array(select s.id from session s where s.tenant || '' = p_tenant limit p_limit));
  get diagnostics v_deleted = row_count;
  if v_deleted = p_limit then return true; end if;
  delete from schedule where id = any (array(select s.id from schedule s where s.tenant || '' = p_tenant limit p_limit));
  get diagnostics v_deleted = row_count;
  if v_deleted = p_limit then return true; end if;
  delete from run where id = any (array(select r.id from run r where r.tenant || '' = p_tenant limit p_limit));
  get diagnostics v_deleted = row_count;
  if v_deleted = p_limit then return true; end if;
  if delete_notifications(array(select n.seq from notification n where n.tenant = p_tenant limit p_limit)) = p_limit then
    return true;
  end if;
  delete from bulk where id = any (array(select b.id from bulk b where b.tenant = p_tenant limit p_limit));
  get diagnostics v_deleted = row_count;
  if v_deleted = p_limit then return true; end if;
  update audit_entry set subject = null, subject_salt = null where seq = any (array(
    select a.seq from audit_entry a
     where a.tenant = p_tenant and a.subject_digest is not null and a.subject is not null limit p_limit));
  get diagnostics v_deleted = row_count;
  if v_deleted = p_limit then return true; end if;
  delete from agent where tenant = p_tenant
     and agent = any (array(select a.agent from agent a where a.tenant = p_tenant limit p_limit));
  get diagnostics v_deleted = row_count;
  if v_deleted = p_limit then return true; end if;
  delete from receiver where tenant = p_tenant
     and host = any (array(select r.host from receiver r where r.tenant = p_tenant limit p_limit));
  get diagnostics v_deleted = row_count;
  if v_deleted = p_limit then return true; end if;
  delete from worker_attempt where hash = any (array(select a.hash from worker_attempt a where a.tenant = p_tenant limit p_limit));
  get diagnostics v_deleted = row_count;
  if v_deleted = p_limit then return true; end if;
  delete from bounded_task where ctid = any (array(select b.ctid from bounded_task b where b.tenant = p_tenant limit p_limit));
  get diagnostics v_deleted = row_count;
  if v_deleted = p_limit then return true; end if;
  delete from bounded_minute where ctid = any (array(select b.ctid from bounded_minute b where b.tenant = p_tenant limit p_limit));
  get diagnostics v_deleted = row_count;
  if v_deleted = p_limit then return true; end if;
  update audit_entry
     set provenance = (jsonb_set(provenance::jsonb, '{createdBy,agentId}', 'null') #- '{createdBy,client}')::text
   where seq = any (array(
     select a.seq from audit_entry a
      where a.tenant = p_tenant and (a.provenance::jsonb #>> '{createdBy,agentId}' is not null
                                     or a.provenance::jsonb #>> '{createdBy,client}' is not null) limit p_limit));
  get diagnostics v_deleted = row_count;
  if v_deleted = p_limit then return true; end if;
  delete from rollup where ctid = any (array(select r.ctid from rollup r where r.tenant = p_tenant limit p_limit));
  get diagnostics v_deleted = row_count;
  return v_deleted = p_limit;
end $$;
