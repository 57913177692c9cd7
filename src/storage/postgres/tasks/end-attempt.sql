-- An attempt whose lease was deleted, and the outcome of its task. n: index within the call. outcome null, if the task is queued
-- again: no event.
create type ended_attempt as (
  n bigint, task_seq bigint, token bigint, node text, line bigint, attempt integer, started_at bigint,
  state text, outcome text, counted boolean, result text, error text, run_at bigint,
  input_tokens bigint, output_tokens bigint, context_tokens bigint, context_window bigint, summary text, begun boolean);

-- Ends attempts that are taken from the nodes that run them.
create function end_attempts(p_now bigint, p_ended ended_attempt[]) returns void language plpgsql as $$
#variable_conflict use_column
declare
:ENDING_VARIABLES
begin
:END_ATTEMPTS
  perform apply_deltas(v_deltas || freed_slots(v_freed));
end $$;

-- The deltas of agent queues in which this many attempts have ended, one for each.
create function freed_slots(p_queues bigint[]) returns queue_delta[] language plpgsql stable as $$
#variable_conflict use_column
begin
  return array(
    select row(line, 0, 0, 0, 0, -count(*)::integer, null, null, null)::queue_delta from unnest(p_queues) u(line) group by line);
end $$;

-- Ends tasks that no attempt holds, in this order. p_inherited: a dependency is the reason.
create function end_waiting(p_now bigint, p_seqs bigint[], p_state text, p_error text, p_inherited boolean) returns void
language plpgsql as $$
#variable_conflict use_column
declare
  v_many integer[] := array[cardinality(p_seqs)];
  v_deltas queue_delta[];
  v_tenants text[];
  v_from text[];
  v_batches batch_delta[];
  v_keys text[];
  v_in_sessions boolean;
  v_calls_back boolean;
  v_has_dependants boolean;
  v_ends_runs boolean;
  v_first bigint;
begin
  with waiting as materialized (
    select t.address, t.seq, t.tenant, t.line, t.rank, t.resting_state, t.batch, t.session, t.origin, t.schedule, t.callback_url,
           t.has_dependants, r.entry, r.entry is not null as ready, t.parked = 'asking' as asking, t.concurrency_key, u.ordinal
      from unnest(p_seqs) with ordinality u(seq, ordinal)
      -- Looked up: a plan with joins, made while there are few tasks, would read all of them when there are many.
     cross join lateral (
       select ctid as address, seq, tenant, line, rank, resting_state, batch, session, origin, schedule, callback_url, has_dependants,
              parked, concurrency_key
         from task where seq = u.seq offset 0) t
      left join lateral (
        select ctid as entry from ready where line = t.line and rank = t.rank and task_seq = t.seq offset 0) r on true),
  gone as (
    delete from ready where ctid = any (array(select entry from waiting where ready))),
  settled as (
    update task t set resting_state = p_state, parked = null, completed_at = p_now, error = p_error
      from waiting w where t.ctid = w.address)
  select array_agg(row(line, -1, -(origin is not null)::integer, -(resting_state = 'queued' and not ready)::integer,
                       -ready::integer, 0, null, null, null)::queue_delta),
         array_agg(tenant order by ordinal), array_agg(resting_state order by ordinal),
         array_agg(row(batch, -(ready or coalesce(asking, false))::integer, -1)::batch_delta) filter (where batch is not null),
         array_agg(seq::text) filter (where ready and concurrency_key is not null),
         bool_or(session is not null), bool_or(callback_url is not null), bool_or(has_dependants),
         bool_or(schedule is not null)
    into v_deltas, v_tenants, v_from, v_batches, v_keys, v_in_sessions, v_calls_back, v_has_dependants, v_ends_runs from waiting;
  v_first := take_event_numbers(v_many[1]);
  perform append_events(v_first, p_now, array_fill('task.' || case p_state when 'done' then 'completed' else p_state end, v_many), v_tenants, p_seqs,
               array_fill(case when p_error is not null then json_build_object('error', p_error)::text end, v_many));
  if v_calls_back then perform add_deliveries(p_now, v_first, p_seqs); end if;
  if v_has_dependants then perform add_releases(p_seqs, case when p_inherited then p_error end); end if;
  if v_ends_runs then perform end_runs(p_now, p_seqs, null); end if;
  if v_in_sessions then perform end_session_turns(p_seqs); end if;
  if v_batches is not null then perform move_batches(v_batches); end if;
  if v_keys is not null then perform defer_work('keys', v_keys); end if;
  perform apply_deltas(v_deltas);
  perform count_moves(v_tenants, v_from, array_fill(p_state, v_many));
end $$;

-- Fails waiting tasks whose deadline has passed. Running tasks are skipped: their runner ends them.
create function expire_overdue(p_now bigint, p_limit integer) returns table (tenant text, agent text, lane text)
language plpgsql as $$
#variable_conflict use_column
declare
  v_seqs bigint[];
begin
  v_seqs := array(
    select t.seq from task t
     where t.expires_at <= p_now and not exists (select 1 from lease l where l.task_seq = t.seq)
     order by t.expires_at, t.seq limit p_limit);
  if cardinality(v_seqs) = 0 then return; end if;
  perform end_waiting(p_now, v_seqs, 'failed', 'deadline exceeded while queued', false);
  return query
    select n.tenant, n.agent, n.lane from unnest(v_seqs) with ordinality u(seq, ordinal)
     cross join lateral (select line from task where seq = u.seq offset 0) t
     cross join lateral (select tenant, agent, lane from line where id = t.line offset 0) n order by u.ordinal;
end $$;
