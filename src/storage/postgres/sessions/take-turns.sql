-- Creates the sessions that new tasks are the first of, in the order of those.
create function create_sessions(p_forms json) returns void language plpgsql as $$
#variable_conflict use_column
begin
  insert into session (tenant, key, default_max, agent)
  select x.tenant, x.session, x.session_max, x.agent
    from (select distinct on (j.tenant, j.session) j.*
            from rows from (json_to_recordset(p_forms) as (tenant text, agent text, session text, session_max integer))
                 with ordinality as j(tenant, agent, session, session_max, n)
           where j.session is not null order by j.tenant, j.session, j.n) x
   order by x.n
  on conflict (tenant, key) do nothing;
end $$;

-- Whether inserting these tasks at once would append an end too late: if the debounced message of a session is stale, the
-- first ready task of that session ends it.
create function ends_stale_message(p_tasks session_task[]) returns boolean language plpgsql stable as $$
#variable_conflict use_column
begin
  return exists (
    select 1 from unnest(p_tasks) a
     cross join lateral (select debounce_seq, cutoff from session where id = a.session offset 0) s
     cross join lateral (select resting_state, place from task where seq = s.debounce_seq offset 0) d
     where a.state = 'queued' and d.resting_state = 'delayed' and d.place <= s.cutoff);
end $$;

-- The positions of new tasks in their sessions, by n, after the last position of each session. The debounced message goes
-- right before the first ready task of its session. admitted: need not be parked, because no task is before it. Rows are looked
-- up here, and below updated by their addresses: a plan with joins, made while there are few sessions and tasks, would read all
-- of them when there are many.
create function assign_positions(p_tasks session_task[], out positions bigint[], out admitted boolean[]) language plpgsql stable as $$
#variable_conflict use_column
begin
  with numbered as (
    select n, session, state, row_number() over (partition by session order by n) as k
      from unnest(p_tasks) where session is not null),
  seated as (
    select n, session, k, min(k) filter (where state = 'queued') over (partition by session) as first from numbered)
  select array_agg(s.last_place + e.k + coalesce(e.k >= e.first and d.seq is not null, false)::integer order by a.n),
         array_agg(coalesce(e.k = e.first and s.active = 0 and s.parked = 0 and s.debounce_seq is null
                            and a.batch is null, false) order by a.n)
    into positions, admitted
    from unnest(p_tasks) a
    left join seated e on e.n = a.n
    left join lateral (
      select last_place, active, parked, debounce_seq, cutoff from session where id = e.session offset 0) s on true
    left join lateral (
      select seq from task where seq = s.debounce_seq and resting_state = 'delayed' and place > s.cutoff offset 0) d on true;
end $$;

-- Adds the turns of new tasks, which are stored. A rejected task has a position and no turn.
create function add_turns(p_now bigint, p_tasks session_task[], p_positions bigint[], p_admitted boolean[])
returns void language plpgsql as $$
#variable_conflict use_column
declare
  v_debounced bigint[];
  v_debounced_positions bigint[];
  v_stale bigint[];
  v_unsettled text[];
begin
  select array_agg(d.seq) filter (where d.place > s.cutoff), array_agg(f.place - 1) filter (where d.place > s.cutoff),
         array_agg(d.seq) filter (where d.place <= s.cutoff)
    into v_debounced, v_debounced_positions, v_stale
    from (select a.session, min(p_positions[a.n + 1]) as place
            from unnest(p_tasks) a where a.session is not null and a.state = 'queued' group by a.session) f
   cross join lateral (select debounce_seq, cutoff from session where id = f.session offset 0) s
   cross join lateral (select seq, place from task where seq = s.debounce_seq and resting_state = 'delayed' offset 0) d;
  with come as materialized (
    select a.n, a.session, a.session_max, a.seq, a.state, a."full" is null as accepted, coalesce(a.origin = 'message', false) as is_message,
           p_positions[a.n + 1] as place, p_admitted[a.n + 1] as admitted
      from unnest(p_tasks) a where a.session is not null),
  seated as (
    insert into turn (session, stage, place, task_seq, is_message)
    select session, case when admitted then 'in' when state = 'queued' then 'parked' else 'early' end, place, seq, is_message
      from come where accepted),
  counted as (
    update session s
       set last_place = c.last_place,
           default_max = c.default_max,
           open = s.open + c.open,
           active = s.active + c.admitted,
           parked = s.parked + c.queued - c.admitted,
           first_parked = coalesce(c.last_admitted + 1, s.first_parked),
           messages = s.messages + c.messages,
           debounce_seq = case when c.queued > 0 then null else s.debounce_seq end
      from (select session, max(place) as last_place, count(*) filter (where accepted)::integer as open,
                   count(*) filter (where accepted and state = 'queued')::integer as queued,
                   count(*) filter (where admitted)::integer as admitted, max(place) filter (where admitted) as last_admitted,
                   count(*) filter (where accepted and is_message)::integer as messages,
                   (array_agg(session_max order by n desc))[1] as default_max
              from come group by session) c
     cross join lateral (select ctid as address from session where id = c.session offset 0) a
     where s.ctid = a.address
    returning s.id, :IS_UNSETTLED as unsettled)
  select array_agg(id::text) filter (where unsettled) into v_unsettled from counted;
  if v_unsettled is not null then perform defer_work('sessions', v_unsettled); end if;
  if v_debounced is not null then perform park(v_debounced, v_debounced_positions); end if;
  if v_stale is not null then perform end_stale(p_now, v_stale); end if;
end $$;

-- Tasks of sessions become ready that were delayed or waited for dependencies, in this order. Each ends the debounce of the
-- message before it.
create function take_turns(p_now bigint, p_seqs bigint[]) returns void language plpgsql as $$
#variable_conflict use_column
declare
  v_seqs bigint[];
  v_positions bigint[];
  v_stale bigint[];
begin
  with asked as (
    select t.seq, t.session, t.place, s.cutoff, s.last_place, s.debounce_seq, u.n
      from unnest(p_seqs) with ordinality u(seq, n)
     cross join lateral (select seq, session, place from task where seq = u.seq offset 0) t
     cross join lateral (select cutoff, last_place, debounce_seq from session where id = t.session offset 0) s),
  come as (
    select seq, session, place, cutoff, last_place, n, false as first from asked
    union all
    select d.seq, a.session, d.place, a.cutoff, a.last_place, a.n, true
      from (select session, cutoff, last_place, debounce_seq, min(n) as n from asked
             where place > cutoff group by session, cutoff, last_place, debounce_seq) a
     cross join lateral (select seq, place from task where seq = a.debounce_seq and resting_state = 'delayed' offset 0) d),
  -- The message may be one of those that become ready.
  each as (
    select seq, session, place, cutoff, last_place, min(n) as n, bool_or(first) as first
      from come group by seq, session, place, cutoff, last_place),
  turned as (
    select seq, n, first, place <= cutoff as stale,
           last_place + row_number() over (partition by session, place <= cutoff order by first desc, n) as place
      from each)
  select array_agg(seq) filter (where not stale), array_agg(place) filter (where not stale),
         array_agg(seq order by n, first desc) filter (where stale)
    into v_seqs, v_positions, v_stale from turned;
  if v_seqs is not null then perform park(v_seqs, v_positions); end if;
  if v_stale is not null then perform end_stale(p_now, v_stale); end if;
end $$;

-- Parks tasks that become ready at these positions of their sessions, until they are admitted.
create function park(p_seqs bigint[], p_positions bigint[]) returns void language plpgsql as $$
#variable_conflict use_column
declare
  v_deltas queue_delta[];
  v_tenants text[];
  v_states text[];
  v_unsettled text[];
begin
  with chosen as materialized (
    select t.address, t.tenant, t.line, t.session, t.resting_state, u.place, :IS_EARLY_TURN as turn
      from unnest(p_seqs, p_positions) u(seq, place)
     cross join lateral (
       select ctid as address, tenant, line, session, resting_state, place from task where seq = u.seq offset 0) t),
  queued as (
    update task t set resting_state = 'queued', unmet = 0, place = c.place from chosen c where t.ctid = c.address),
  turned as (
    update turn u set stage = 'parked', place = c.place from chosen c where u.ctid = c.turn),
  counted as (
    update session s
       set last_place = greatest(s.last_place, c.last_place), parked = s.parked + c.tasks, debounce_seq = null
      from (select session, count(*)::integer as tasks, max(place) as last_place from chosen group by session) c
     cross join lateral (select ctid as address from session where id = c.session offset 0) a
     where s.ctid = a.address
    returning s.id, :IS_UNSETTLED as unsettled)
  select array_agg(row(line, 0, 0, 1, 0, 0, null, null, null)::queue_delta), array_agg(tenant), array_agg(resting_state),
         (select array_agg(id::text) from counted where unsettled)
    into v_deltas, v_tenants, v_states, v_unsettled from chosen;
  perform apply_deltas(v_deltas);
  perform count_moves(v_tenants, v_states, array_fill('queued'::text, array[cardinality(v_states)]));
  if v_unsettled is not null then perform defer_work('sessions', v_unsettled); end if;
end $$;

-- A task that had ended is accepted anew: an earlier stop of the session does not count. Returns its position; null: it has
-- no session.
create function reenter_session(p_task task) returns bigint language plpgsql as $$
#variable_conflict use_column
declare
  v_message boolean := coalesce(p_task.origin = 'message', false);
  v_position bigint;
begin
  if p_task.session is null then return null; end if;
  update session set last_place = last_place + 1, open = open + 1, messages = messages + v_message::integer
   where id = p_task.session returning last_place into v_position;
  insert into turn (session, stage, place, task_seq, is_message)
  values (p_task.session, 'early', v_position, p_task.seq, v_message);
  return v_position;
end $$;

-- The debounced message of a session takes its turn, because another task comes after it.
create function end_debounce(p_now bigint, p_session bigint) returns void language plpgsql as $$
#variable_conflict use_column
declare
  v_seq bigint;
begin
  select d.seq into v_seq from session s
   cross join lateral (select seq from task where seq = s.debounce_seq and resting_state = 'delayed' offset 0) d
   where s.id = p_session;
  if found then perform take_turns(p_now, array[v_seq]); end if;
  update session set debounce_seq = null where id = p_session and debounce_seq is not null;
end $$;
