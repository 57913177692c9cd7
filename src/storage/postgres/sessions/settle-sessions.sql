-- What one task changes in its session.
create type session_delta as (session bigint, active integer, parked integer, open integer, messages integer);

-- Applies deltas of sessions, here and below by their addresses: a plan with a join, made while there are few sessions, would
-- read all of them when there are many.
create function move_sessions(p_deltas session_delta[]) returns void language plpgsql as $$
#variable_conflict use_column
declare
  v_unsettled text[];
begin
  with moved as (
    select session, sum(active)::integer as active, sum(parked)::integer as parked, sum(open)::integer as open,
           sum(messages)::integer as messages
      from unnest(p_deltas) group by session),
  counted as (
    update session s
       set active = s.active + m.active, parked = s.parked + m.parked, open = s.open + m.open,
           messages = s.messages + m.messages
      from moved m
     cross join lateral (select ctid as address from session where id = m.session offset 0) a
     where s.ctid = a.address
    returning s.id, :IS_UNSETTLED as unsettled)
  select array_agg(id::text) filter (where unsettled) into v_unsettled from counted;
  if v_unsettled is not null then perform defer_work('sessions', v_unsettled); end if;
end $$;

-- Attempts of session tasks have ended, some together with their tasks. Tasks that wait again keep their position.
create function end_session_attempts(p_seqs bigint[], p_states text[], p_tokens bigint[], p_windows bigint[]) returns void
language plpgsql as $$
#variable_conflict use_column
declare
  v_unsettled text[];
begin
  with ended as materialized (
    select e.n, e.state in ('done', 'failed', 'cancelled') as final, e.context_tokens, e.context_window,
           t.session, t.origin, :IS_ADMITTED_TURN as turn
      from unnest(p_seqs, p_states, p_tokens, p_windows) with ordinality e(seq, state, context_tokens, context_window, n)
     cross join lateral (select session, origin, place from task where seq = e.seq offset 0) t),
  gone as (delete from turn where ctid = any (array(select turn from ended where final))),
  -- If several reported the size of the context, the last report counts.
  moved as (
    select session, count(*) filter (where final)::integer as ended,
           count(*) filter (where final and origin = 'message')::integer as messages,
           (array_agg(context_tokens order by n desc) filter (where context_tokens is not null))[1] as tokens,
           (array_agg(context_window order by n desc) filter (where context_window is not null))[1] as context_window
      from ended where session is not null group by session),
  counted as (
    update session s
       set active = s.active - m.ended, open = s.open - m.ended, messages = s.messages - m.messages,
           tokens = coalesce(m.tokens, s.tokens), context_window = coalesce(m.context_window, s.context_window)
      from moved m
     cross join lateral (select ctid as address from session where id = m.session offset 0) a
     where s.ctid = a.address
    returning s.id, :IS_UNSETTLED or :HAS_TAKEN as unsettled)
  select array_agg(id::text) filter (where unsettled) into v_unsettled from counted;
  if v_unsettled is not null then
    perform return_messages(p_seqs, p_states);
    perform defer_work('sessions', v_unsettled);
  end if;
end $$;

-- Messages that attempts have taken wait again, if the tasks of the attempts do not end.
create function return_messages(p_seqs bigint[], p_states text[]) returns void language plpgsql as $$
#variable_conflict use_column
begin
  update turn set taken_by = null
   where ctid = any (array(
     select u.turn from unnest(p_seqs, p_states) e(seq, state)
      cross join lateral (select session from task where seq = e.seq offset 0) t
      cross join lateral (
        select ctid as turn from turn where session = t.session and steer_until is not null and taken_by = e.seq offset 0) u
      where e.state not in ('done', 'failed', 'cancelled')));
end $$;

-- Session tasks have ended that no attempt held.
create function end_session_turns(p_seqs bigint[]) returns void language plpgsql as $$
#variable_conflict use_column
declare
  v_deltas session_delta[];
begin
  with gone as (
    delete from turn where ctid = any (array(
      select :IS_OPEN_TURN from task t where t.seq = any (p_seqs)))
    returning session, stage, is_message)
  select array_agg(row(session, -(stage = 'in')::integer, -(stage = 'parked')::integer, -1, -is_message::integer)::session_delta)
    into v_deltas from gone;
  if v_deltas is not null then perform move_sessions(v_deltas); end if;
end $$;

-- Admits tasks to sessions that have room. If too many are admitted, those that have not started are parked again, the last
-- first.
create function settle_sessions(p_now bigint) returns void language plpgsql as $$
#variable_conflict use_column
declare
  v_ids bigint[] := array(select distinct id::bigint from unnest(take_deferred_work('sessions')) n(id) order by 1);
  v_over_limit boolean;
  v_stale boolean;
begin
  perform end_taken(p_now, v_ids);
  select bool_or(s.active > :SESSION_MAX), bool_or(s.parked > 0 and s.first_parked <= s.cutoff)
    into v_over_limit, v_stale from session s where s.id = any (v_ids);
  if v_over_limit then perform park_surplus(v_ids); end if;
  if v_over_limit or v_stale then
    perform end_stale_parked(p_now, v_ids);
    -- A session that had room before still has it.
    perform take_deferred_work('sessions');
  end if;
  perform admit_from_sessions(v_ids);
end $$;

-- Messages that an attempt has taken end together with its task.
create function end_taken(p_now bigint, p_ids bigint[]) returns void language plpgsql as $$
#variable_conflict use_column
declare
  v_taken record;
  v_any boolean := false;
begin
  for v_taken in
    select u.task_seq, k.id as taker, k.resting_state as state, k.error
      from unnest(p_ids) s(id)
     cross join lateral (
       select place, task_seq, taken_by from turn
        where session = s.id and steer_until is not null and taken_by is not null offset 0) u
     cross join lateral (
       select id, resting_state, error from task where seq = u.taken_by and completed_at is not null offset 0) k
     order by s.id, u.place
  loop
    perform end_waiting(p_now, array[v_taken.task_seq], v_taken.state, v_taken.error, false);
    if v_taken.state = 'done' then
      update task set result = '{"steeredInto":' || to_json(v_taken.taker) || '}' where seq = v_taken.task_seq;
    end if;
    v_any := true;
  end loop;
  if not v_any then return; end if;
  -- These sessions are being settled already.
  perform take_deferred_work('sessions');
  perform pg_notify('rota', ':SIGNALS_OF_ENDS');
end $$;

create function park_surplus(p_ids bigint[]) returns void language plpgsql as $$
#variable_conflict use_column
declare
  v_deltas queue_delta[];
  v_batches batch_delta[];
  v_freed text[];
begin
  with last as materialized (
    select u.session, u.place, u.turn, t.address, t.seq, t.line, t.batch, r.entry, t.parked is null as ready,
           t.parked is null or t.parked = 'asking' as active, t.concurrency_key is not null as keyed
      from (select s.id, s.active - :SESSION_MAX as surplus from session s
             where s.id = any (p_ids) and s.active > :SESSION_MAX) s
     cross join lateral (
       select u.session, u.place, u.task_seq, u.ctid as turn from turn u where u.session = s.id and :UNSTARTED
        order by u.place desc limit s.surplus) u
     cross join lateral (
       select ctid as address, seq, line, rank, batch, parked, concurrency_key from task where seq = u.task_seq offset 0) t
      left join lateral (
        select ctid as entry from ready where line = t.line and rank = t.rank and task_seq = t.seq offset 0) r on true),
  gone as (delete from ready where ctid = any (array(select entry from last where ready))),
  unparked as (update task set parked = null where ctid = any (array(select address from last where not ready))),
  moved as (update turn set stage = 'parked' where ctid = any (array(select turn from last))),
  counted as (
    update session s
       set active = s.active - b.tasks, parked = s.parked + b.tasks, first_parked = least(s.first_parked, b.first)
      from (select session, count(*)::integer as tasks, min(place) as first from last group by session) b
     cross join lateral (select ctid as address from session where id = b.session offset 0) a
     where s.ctid = a.address)
  select array_agg(row(line, 0, 0, 1, -1, 0, null, null, null)::queue_delta) filter (where ready),
         array_agg(row(batch, -1, 0)::batch_delta) filter (where batch is not null and active),
         array_agg(seq::text) filter (where ready and keyed)
    into v_deltas, v_batches, v_freed from last;
  if v_deltas is not null then perform apply_deltas(v_deltas); end if;
  if v_batches is not null then perform move_batches(v_batches); end if;
  if v_freed is not null then perform defer_work('keys', v_freed); end if;
end $$;

create function end_stale_parked(p_now bigint, p_ids bigint[]) returns void language plpgsql as $$
#variable_conflict use_column
declare
  v_seqs bigint[] := array(
    select u.task_seq from session s
     cross join lateral (
       select place, task_seq from turn
        where session = s.id and stage = 'parked' and place between s.first_parked and s.cutoff offset 0) u
     where s.id = any (p_ids) order by s.id, u.place);
begin
  if cardinality(v_seqs) > 0 then perform end_stale(p_now, v_seqs); end if;
  update session set first_parked = cutoff + 1 where id = any (p_ids) and first_parked <= cutoff;
end $$;

-- Ends tasks from before a stop of the session that become ready after it.
create function end_stale(p_now bigint, p_seqs bigint[]) returns void language plpgsql as $$
begin
  perform end_waiting(p_now, p_seqs, 'cancelled', ':STALE', false);
  -- Rare enough for a notification inside the transaction, and no function that moves tasks expects this end.
  perform pg_notify('rota', ':SIGNALS_OF_ENDS');
end $$;

create function admit_from_sessions(p_ids bigint[]) returns void language plpgsql as $$
#variable_conflict use_column
declare
  v_sessions bigint[];
  v_positions bigint[];
  v_seqs bigint[];
  v_ranks bigint[];
  v_turns tid[];
  v_several boolean;
  v_deltas queue_delta[];
  v_batches batch_delta[];
  v_asking text[];
begin
  select array_agg(s.id order by s.id, u.place), array_agg(u.place order by s.id, u.place),
         array_agg(u.task_seq order by s.id, u.place), array_agg(u.turn), bool_or(s.active > 0 or s.room > 1)
    into v_sessions, v_positions, v_seqs, v_turns, v_several
    from (select s.id, s.active, s.first_parked, :SESSION_MAX - s.active as room from session s
           where s.id = any (p_ids) and s.parked > 0 and s.active < :SESSION_MAX) s
   cross join lateral (
     select place, task_seq, ctid as turn from turn
      where session = s.id and stage = 'parked' and place >= s.first_parked and taken_by is null order by place limit s.room) u;
  if v_seqs is null then return; end if;
  if v_several then v_ranks := ranks_in_turn(v_sessions, v_seqs); end if;
  with first as (
    select * from unnest(v_sessions, v_positions, v_seqs, v_ranks) f(session, place, seq, rank)),
  moved as (update turn set stage = 'in' where ctid = any (v_turns)),
  counted as (
    update session s
       set active = s.active + f.tasks, parked = s.parked - f.tasks,
           first_parked = least(f.last + 1, (select min(u.place) from turn u
                                              where u.session = s.id and u.steer_until is not null and u.taken_by is not null))
      from (select session, count(*)::integer as tasks, max(place) as last from first group by session) f
     cross join lateral (select ctid as address from session where id = f.session offset 0) a
     where s.ctid = a.address),
  entered as materialized (
    select t.address, t.seq, t.line, t.batch, coalesce(f.rank, t.rank) as rank, t.rank as rank_before, :PARKED_BY as parked
      from first f
     cross join lateral (
       select ctid as address, seq, line, batch, rank, concurrency_key from task where seq = f.seq offset 0) t),
  changed as (
    update task t set rank = e.rank, parked = e.parked
      from entered e where t.ctid = e.address and (e.parked is not null or e.rank <> e.rank_before)),
  placed as (insert into ready (line, rank, task_seq) select line, rank, seq from entered where parked is null)
  select array_agg(row(line, 0, 0, -1, 1, 0, null, rank, seq)::queue_delta) filter (where parked is null),
         array_agg(row(batch, (parked is distinct from 'batch')::integer, 0)::batch_delta) filter (where batch is not null),
         array_agg(seq::text) filter (where parked = 'asking')
    into v_deltas, v_batches, v_asking from entered;
  if v_deltas is not null then perform apply_deltas(v_deltas); end if;
  if v_batches is not null then perform move_batches(v_batches); end if;
  if v_asking is not null then perform defer_work('keys', v_asking); end if;
end $$;

-- Order beats priority: an admitted task does not start before tasks that its session admitted earlier. Returns the ranks
-- of these tasks, which are given session by session in the order of their positions.
create function ranks_in_turn(p_sessions bigint[], p_seqs bigint[]) returns bigint[] language plpgsql as $$
#variable_conflict use_column
declare
  v_ranks bigint[] := '{}';
  v_session bigint;
  v_last_rank bigint;
  v_last_seq bigint;
  v_next record;
begin
  for v_next in
    select f.session, t.seq, t.rank
      from unnest(p_sessions, p_seqs) with ordinality f(session, seq, n)
     cross join lateral (select seq, rank from task where seq = f.seq offset 0) t order by f.n
  loop
    if v_next.session is distinct from v_session then
      v_session := v_next.session;
      select t.rank, t.seq into v_last_rank, v_last_seq
        from turn u cross join lateral (select rank, seq from task where seq = u.task_seq offset 0) t
       where u.session = v_session and :UNSTARTED
       order by t.rank desc, t.seq desc limit 1;
    end if;
    if (v_last_rank, v_last_seq) > (v_next.rank, v_next.seq) then
      v_last_rank := v_last_rank + case when v_last_seq < v_next.seq then 0 else 1 end;
    else
      v_last_rank := v_next.rank;
    end if;
    v_last_seq := v_next.seq;
    v_ranks := v_ranks || v_last_rank;
  end loop;
  return v_ranks;
end $$;
