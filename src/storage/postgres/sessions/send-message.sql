-- No row: its session would get settings, and its tenant has reached its limit of such sessions.
create function send_message(
  p_now bigint, p_tasks json, p_mode text, p_max_concurrent integer, p_defaults json, p_message text, p_length integer,
  p_max_sessions integer, p_steer_ms integer, p_bounds json)
returns table (seq bigint, id text, state text, "position" integer, created_at bigint, run_at bigint, deadline bigint,
               "full" text, queued bigint, repeats text, unserved boolean, merged boolean, cancelled json, refused_waiting integer,
               refused_cap integer)
language plpgsql as $$
#variable_conflict use_column
declare
  v_now bigint := take_write_lock(p_now);
  v_task json := p_tasks -> 0;
  v_session session;
  v_mode text;
  v_window bigint;
  v_sent inserted_task;
  v_merged bigint;
  v_cancelled json := '[]';
  v_waiting integer;
  v_cap integer;
  v_unsettled text;
  v_offered boolean;
begin
  select * into v_sent from already_inserted(array[v_task ->> 'id']);
  if found then
    return query select v_sent.*, false, v_cancelled, null::integer, null::integer;
    return;
  end if;
  if p_max_concurrent is not null and not may_pin_session(v_task ->> 'tenant', v_task ->> 'session', p_max_sessions) then
    return;
  end if;
  select * into v_session from session s where s.tenant = v_task ->> 'tenant' and s.key = v_task ->> 'session';
  if not found then
    perform create_sessions(p_tasks);
    select * into v_session from session s where s.tenant = v_task ->> 'tenant' and s.key = v_task ->> 'session';
  end if;
  v_mode := coalesce(p_mode, v_session.mode, p_defaults ->> 'mode');
  v_offered := v_mode = 'steer' and exists (select 1 from lease l where l.session = v_session.id);
  v_window := case when v_mode in ('interrupt', 'collect') or v_offered then 0
                   else coalesce(v_session.debounce_ms, (p_defaults ->> 'debounceMs')::integer) end;
  if v_mode = 'collect' then
    v_merged := add_to_collected(v_session, v_task, p_message, p_length);
  elsif v_window > 0 and v_session.debounce_mode = v_mode then
    v_merged := add_to_debounced(v_now, v_session, v_task, v_window, p_message, p_length);
  end if;
  if v_merged is null and v_mode = 'interrupt' then
    v_cancelled := cancel_open_tasks(v_now, array(select u.task_seq from turn u where u.session = v_session.id order by u.task_seq),
                                ':INTERRUPTED');
  elsif v_merged is null then
    v_cap := coalesce(v_session.cap, (p_defaults ->> 'cap')::integer);
    v_waiting := waiting_messages(v_session);
    if v_waiting >= v_cap and coalesce(v_session.drop_policy, p_defaults ->> 'drop') = 'new' then
      return query select (null::inserted_task).*, false, v_cancelled, v_waiting, v_cap;
      return;
    end if;
    if v_waiting >= v_cap then
      -- The inner limit lets the planner use the index: that many messages include enough that do not run.
      v_cancelled := cancel_open_tasks(v_now, array(
        select o.task_seq
          from (select u.task_seq, u.taken_by from turn u where u.session + 0 = v_session.id and u.is_message
                 order by u.task_seq limit v_session.messages - v_cap + 1) o
         where o.taken_by is null and not exists (select 1 from lease l where l.task_seq = o.task_seq offset 0)
         order by o.task_seq limit v_waiting - v_cap + 1), ':DROPPED');
    end if;
  end if;
  update session s
     set agent = v_task ->> 'agent', lane = v_task ->> 'lane', default_max = (v_task ->> 'session_max')::integer,
         max_concurrent = coalesce(p_max_concurrent, s.max_concurrent), pinned = s.pinned or p_max_concurrent is not null
   where s.id = v_session.id
  returning case when :IS_UNSETTLED then s.id::text end into v_unsettled;
  if v_unsettled is not null then perform defer_work('sessions', array[v_unsettled]); end if;
  if v_merged is not null then
    select * into v_sent from already_inserted(array(select t.id from task t where t.seq = v_merged));
  else
    perform end_debounce(v_now, v_session.id);
    select * into v_sent
      from insert_json_tasks(v_now, json_build_array(jsonb_set(v_task::jsonb, '{run_at}',
                     case when v_window > 0 then to_jsonb(v_now + v_window) else 'null' end)), :NO_LIMIT, :NO_LIMIT, :NO_LIMIT);
    if v_sent.state = 'delayed' then
      update session s
         set debounce_seq = v_sent.seq, debounce_since = v_now, debounce_mode = v_mode, debounce_length = p_length
       where s.id = v_session.id;
    end if;
    if v_mode = 'collect' or v_offered then
      update turn
         set collected_length = case when v_mode = 'collect' then p_length end,
             steer_until = case when v_offered then v_now + p_steer_ms end
       where ctid = (select :IS_READY_TURN from task t where t.seq = v_sent.seq);
    end if;
    if v_task ->> 'key' is not null then 
      perform store_idempotency_keys(v_now, array[v_task ->> 'tenant'], array[v_task ->> 'key'], array[v_task ->> 'hash'],
                        array[v_sent.seq]);
    end if;
    if p_bounds is not null then perform count_bounded(v_now, p_bounds, array[v_sent.seq]); end if;
  end if;
  perform settle_moves(v_now, :RELEASED_MAX);
  :PREEMPT
  return query select v_sent.*, v_merged is not null, v_cancelled, null::integer, null::integer;
end $$;

-- Adds a message to the debounced one before it and returns that one; null: it cannot be added.
create function add_to_debounced(
  p_now bigint, p_session session, p_task json, p_window bigint, p_message text, p_length integer)
returns bigint language plpgsql as $$
#variable_conflict use_column
declare
  v_length integer := p_session.debounce_length + 1 + p_length;
  v_seq bigint;
begin
  update task t
     set spec = left(t.spec, -:AFTER_MESSAGE_LENGTH) || '\n' || p_message || ':AFTER_MESSAGE',
         run_at = least(p_now + p_window, p_session.debounce_since + :DEBOUNCE_WINDOWS_MAX * p_window)
   where t.seq = p_session.debounce_seq and t.resting_state = 'delayed' and t.run_at > p_now
     and t.agent = p_task ->> 'agent'
     and (select n.lane from line n where n.id = t.line) = p_task ->> 'lane'
     and :HAS_SAME_RIGHTS
     and v_length <= :JOINED_MAX
  returning t.seq into v_seq;
  if found then update session s set debounce_length = v_length where s.id = p_session.id; end if;
  return v_seq;
end $$;

-- Adds a message to the last task that is ready in the session, if that is a message that collects others, and returns that
-- one; null: it cannot be added.
create function add_to_collected(p_session session, p_task json, p_message text, p_length integer) returns bigint
language plpgsql as $$
#variable_conflict use_column
declare
  v_last turn;
  v_seq bigint;
begin
  select l.* into v_last
    from ((select u.* from turn u where u.session = p_session.id and u.stage = 'parked' order by u.place desc limit 1)
          union all
          (select u.* from turn u where u.session = p_session.id and u.stage = 'in' order by u.place desc limit 1)) l
   order by l.place desc limit 1;
  if v_last.collected_length is null or v_last.collected_length + 1 + p_length > :JOINED_MAX then return null; end if;
  update task t set spec = left(t.spec, -:AFTER_MESSAGE_LENGTH) || '\n' || p_message || ':AFTER_MESSAGE'
   where t.seq = v_last.task_seq and t.resting_state = 'queued' and t.executions = 0 and t.agent = p_task ->> 'agent'
     and (select n.lane from line n where n.id = t.line) = p_task ->> 'lane'
     and :HAS_SAME_RIGHTS
     and not exists (select 1 from lease l where l.task_seq = t.seq)
     and not exists (select 1 from task d where d.seq = p_session.debounce_seq and d.resting_state = 'delayed')
  returning t.seq into v_seq;
  if found then
    update turn u set collected_length = u.collected_length + 1 + p_length
     where u.session = v_last.session and u.stage = v_last.stage and u.place = v_last.place;
  end if;
  return v_seq;
end $$;

-- How many messages of a session wait: open ones without the few that run or that a running attempt has taken.
create function waiting_messages(p_session session) returns integer language plpgsql stable as $$
begin
  return p_session.messages - (
    select count(*) from lease l cross join lateral (select origin from task where seq = l.task_seq offset 0) t
     where l.session = p_session.id and t.origin = 'message') - (
    select count(*) from turn u where u.session = p_session.id and u.steer_until is not null and u.taken_by is not null);
end $$;
