-- Whether a session may have settings: it has some, or its tenant is below its limit of sessions with settings.
create function may_pin_session(p_tenant text, p_key text, p_max_sessions integer) returns boolean language plpgsql as $$
begin
  return p_max_sessions is null
      or exists (select 1 from session s where s.tenant = p_tenant and s.key = p_key and s.pinned)
      or (select count(*) from (select 1 from session s where '' || s.tenant = p_tenant and s.pinned limit p_max_sessions) o)
         < p_max_sessions;
end $$;

-- No row: its tenant has reached its limit of sessions with settings.
create function update_session(
  p_now bigint, p_tenant text, p_key text, p_default_max integer, p_changes jsonb, p_max_sessions integer)
returns table (id bigint, tenant text, key text, agent text, lane text, mode text, cap integer, drop_policy text,
               debounce_ms integer, max_concurrent integer, default_max integer, tokens bigint, context_window bigint, generation integer,
               open integer, running integer)
language plpgsql as $$
#variable_conflict use_column
declare
  v_now bigint := take_write_lock(p_now);
  v_unsettled text;
  v_new boolean := not exists (select 1 from session s where s.tenant = p_tenant and s.key = p_key);
  v_pinned boolean := v_new or exists (
    select 1 from jsonb_each_text(p_changes) c where c.key not in ('tokens', 'contextWindow') and c.value is not null);
begin
  if v_pinned and not may_pin_session(p_tenant, p_key, p_max_sessions) then return; end if;
  if v_new then insert into session (tenant, key, default_max) values (p_tenant, p_key, p_default_max); end if;
  update session s
     set default_max = p_default_max,
         pinned = s.pinned or v_pinned,
         :CHANGED_AGENT,
         :CHANGED_LANE,
         :CHANGED_MODE,
         :CHANGED_CAP,
         :CHANGED_DROP,
         :CHANGED_DEBOUNCE_MS,
         :CHANGED_MAX_CONCURRENT,
         :CHANGED_TOKENS,
         :CHANGED_CONTEXT_WINDOW
   where s.tenant = p_tenant and s.key = p_key
  returning case when :IS_UNSETTLED then s.id::text end into v_unsettled;
  if v_unsettled is not null then perform defer_work('sessions', array[v_unsettled]); end if;
  perform settle_moves(v_now, :RELEASED_MAX);
  :PREEMPT
  return query select :SESSION_COLUMNS from session s where s.tenant = p_tenant and s.key = p_key;
end $$;

create function stop_session(
  p_now bigint, p_tenant text, p_key text, p_scope text, p_limit integer, p_cutoff bigint)
returns table (cancelled json, more boolean, cutoff bigint) language plpgsql as $$
#variable_conflict use_variable
declare
  v_now bigint := take_write_lock(p_now);
  v_session session;
  v_seqs bigint[];
begin
  select * into v_session from session s where s.tenant = p_tenant and s.key = p_key;
  if not found then return; end if;
  if p_scope = 'oldest' then
    cutoff := v_session.cutoff;
    v_seqs := array(select l.task_seq from lease l where l.session = v_session.id order by l.token limit 1);
    -- If none runs: the first task that waits for its retry, for a slot or in the debounce window.
    if cardinality(v_seqs) = 0 then
      v_seqs := array(
        select w.task_seq
          from ((select u.place, u.task_seq from turn u
                  where u.session = v_session.id and u.stage = 'in' order by u.place limit 1)
                union all
                (select u.place, u.task_seq from turn u
                  where u.session = v_session.id and u.stage = 'parked' order by u.place limit 1)
                union all
                select t.place, t.seq from task t
                 where t.seq = v_session.debounce_seq and t.resting_state = 'delayed') w
         order by w.place limit 1);
    end if;
  else
    cutoff := least(coalesce(p_cutoff, v_session.last_place), v_session.last_place);
    update session s
       set cutoff = greatest(s.cutoff, stop_session.cutoff),
           generation = s.generation + case when p_scope = 'reset' and p_cutoff is null then 1 else 0 end,
           generation_place = case when p_scope = 'reset' and p_cutoff is null then s.last_place else s.generation_place end,
           tokens = case when p_scope = 'reset' and p_cutoff is null then null else s.tokens end
     where s.id = v_session.id;
    -- Running tasks first, then waiting ones.
    v_seqs := array(
      select l.task_seq from lease l cross join lateral (select place from task where seq = l.task_seq offset 0) t
       where l.session = v_session.id and t.place <= cutoff order by l.token limit p_limit + 1);
    v_seqs := v_seqs || array(
      select w.task_seq
        from (:WAITING_MESSAGES) w
       order by w.place limit p_limit + 1 - cardinality(v_seqs));
  end if;
  more := cardinality(v_seqs) > p_limit;
  cancelled := cancel_open_tasks(v_now, v_seqs[:p_limit],
    case when p_scope = 'reset' then ':SESSION_RESET' else ':SESSION_STOPPED' end);
  -- Other tasks may have room now, or be stale.
  perform defer_work('sessions', array[v_session.id::text]);
  perform settle_moves(v_now, :RELEASED_MAX);
  :PREEMPT
  return next;
end $$;

-- A session without settings is deleted with the last of its tasks.
create function delete_empty_sessions(p_ids bigint[]) returns void language plpgsql as $$
begin
  delete from session s
   where s.id = any (p_ids) and not s.pinned and s.generation = 0
     and (select t.seq from task t where t.session + 0 = s.id limit 1) is null;
end $$;

-- How many of its tasks run or wait; if not 0, nothing was deleted. Null: there is no such session.
create function delete_session(p_now bigint, p_tenant text, p_key text) returns integer language plpgsql as $$
declare
  v_session session;
begin
  perform take_write_lock(p_now);
  select * into v_session from session s where s.tenant = p_tenant and s.key = p_key;
  if v_session.open = 0 then
    update session s
       set agent = null, lane = null, mode = null, cap = null, drop_policy = null, debounce_ms = null, max_concurrent = null,
           tokens = null, context_window = null, generation = 0, generation_place = s.last_place, pinned = false
     where s.id = v_session.id;
    perform delete_empty_sessions(array[v_session.id]);
  end if;
  return v_session.open;
end $$;
