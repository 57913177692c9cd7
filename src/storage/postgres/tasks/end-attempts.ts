import { FRONT_RANK } from "../../../model/priority.ts";
import { RANK_IN_ITS_LANE } from "./rank.ts";

/** Variables that a function with `endAttempts` has to declare. */
export const ENDING_VARIABLES = `
  v_deltas line_delta[];
  v_freed bigint[];
  v_seqs bigint[];
  v_tokens bigint[];
  v_types text[];
  v_data text[];
  v_tenants text[];
  v_states text[];
  v_context_tokens bigint[];
  v_context_windows bigint[];
  v_summaries text[];
  v_batches batch_delta[];
  v_keys text[];
  v_in_sessions boolean;
  v_calls_back boolean;
  v_has_dependants boolean;
  v_ends_runs boolean;
  v_first bigint;`;

/**
 * Ends attempts: with their task (done, failed, cancelled) or alone (queued, delayed). `ended` defines a query of that name,
 * which takes these attempts away and has the columns of ended_attempt. The caller records what this moves in agent queues:
 * v_freed has the agent queue of each attempt that ended with its task, v_deltas the moves of the others. This is text rather
 * than a function, because passing rows from one statement to the next as an array costs more than ending the attempts.
 */
export function endAttempts(ended: string): string {
  return `
  with ${ended},
  settled as (
    update task t
       set resting_state = e.state,
           completed_at = case when e.final then p_now end,
           executions = e.attempt,
           started_at = coalesce(t.started_at, e.started_at),
           last_started_at = case when e.final then e.started_at end,
           last_outcome = case when e.final then e.outcome end,
           last_node = case when e.final then e.node end,
           result = e.result,
           error = case when e.final then e.error end,
           parked = case when e.state = 'queued' and t.concurrency_key is not null then 'asking' end,
           run_at = case when e.state = 'delayed' then e.run_at else t.run_at end,
           -- Whoever had to give way stays in front until it has failed by itself.
           rank = case when e.outcome = 'preempted' then ${FRONT_RANK}
                       when e.state = 'delayed' and t.rank = ${FRONT_RANK} then ${RANK_IN_ITS_LANE} else t.rank end,
           preemptions_left = t.preemptions_left - case when e.outcome = 'preempted' then 1 else 0 end,
           input_tokens = case when e.input_tokens is null then t.input_tokens
                               else coalesce(t.input_tokens, 0) + e.input_tokens end,
           output_tokens = case when e.output_tokens is null then t.output_tokens
                                else coalesce(t.output_tokens, 0) + e.output_tokens end,
           context_window = coalesce(e.context_window, t.context_window),
           retry_count = t.retry_count + case when e.counted then 1 else 0 end
      from (select *, state in ('done', 'failed', 'cancelled') as final from ended) e where t.seq = e.task_seq
    returning e.n, t.seq, e.token, t.tenant, t.rank, e.line, e.node, e.attempt, e.started_at, e.state, e.final, e.outcome,
              e.error, e.run_at, e.context_tokens, e.context_window, e.summary, t.batch, t.session, t.concurrency_key, t.parked,
              (t.origin is not null)::integer as exempt, t.schedule, t.callback_url, t.has_dependants),
  tried as (
    insert into attempt (task_seq, number, started_at, ended_at, outcome, error, node)
    select seq, attempt, started_at, p_now, outcome, error, node from settled where not final),
  back as (
    insert into ready (line, rank, task_seq) select line, rank, seq from settled where state = 'queued' and parked is null)
  select array_agg(case when state = 'queued' and parked is null
                        then row(line, 1, exempt, 0, 1, -1, null, rank, seq)::line_delta
                        else row(line, 1, exempt, (parked is not null)::integer, 0, -1, null, null, null)::line_delta end) filter (where not final),
         array_agg(line) filter (where final),
         array_agg(seq order by n), array_agg(token order by n), array_agg(tenant order by n), array_agg(state order by n),
         array_agg(case when outcome = 'preempted' then 'task.preempted'
                        else case state when 'done' then 'task.completed' when 'failed' then 'task.failed'
                                        when 'cancelled' then 'task.cancelled' else 'task.retrying' end end order by n),
         array_agg(case when outcome = 'preempted' then json_build_object('attempt', attempt, 'error', error)::text
                        when not final then json_build_object('attempt', attempt, 'error', error,
                                              'retryAt', coalesce(run_at, p_now), 'state', state)::text
                        when error is not null then json_build_object('error', error)::text end order by n),
         array_agg(context_tokens order by n), array_agg(context_window order by n), array_agg(summary order by n),
         -- Whoever goes back to the queue keeps its place in the batch.
         array_agg(row(batch, -1, -final::integer)::batch_delta) filter (where batch is not null and state <> 'queued'),
         array_agg(seq::text) filter (where concurrency_key is not null),
         bool_or(session is not null), bool_or(final and callback_url is not null), bool_or(final and has_dependants),
         bool_or(final and schedule is not null)
    into v_deltas, v_freed, v_seqs, v_tokens, v_tenants, v_states, v_types, v_data, v_context_tokens, v_context_windows,
         v_summaries, v_batches, v_keys, v_in_sessions, v_calls_back, v_has_dependants, v_ends_runs
    from settled;
  if v_seqs is not null then
    v_first := take_event_numbers(cardinality(v_seqs));
    perform tell(v_first, p_now, v_types, v_tenants, v_seqs, v_data);
    if v_calls_back then perform add_deliveries(p_now, v_first, v_seqs); end if;
    if v_has_dependants then perform add_releases(v_seqs, null); end if;
    if v_ends_runs then perform end_runs(p_now, v_seqs, v_summaries); end if;
    if v_in_sessions then perform leave_attempts(v_seqs, v_states, v_context_tokens, v_context_windows); end if;
    if v_batches is not null then perform move_batches(v_batches); end if;
    if v_keys is not null then perform add_note('keys', v_keys); end if;
    perform count_moves(v_tenants, array_fill('queued'::text, array[cardinality(v_states)]), v_states);
  end if;`;
}

/** Functions that end attempts and tasks. Finish, cancel, rescue and expire all use them. */
export const ENDING_FUNCTIONS = `
-- An attempt whose lease was taken away, and what becomes of its task. n: order within the call.
create type ended_attempt as (
  n bigint, task_seq bigint, token bigint, node text, line bigint, attempt integer, started_at bigint,
  state text, outcome text, counted boolean, result text, error text, run_at bigint,
  input_tokens bigint, output_tokens bigint, context_tokens bigint, context_window bigint, summary text);

-- Ends attempts that somebody takes away from those who run them.
create function end_attempts(p_now bigint, p_ended ended_attempt[]) returns void language plpgsql as $$
#variable_conflict use_column
declare${ENDING_VARIABLES}
begin${endAttempts("ended as (select * from unnest(p_ended))")}
  perform apply_deltas(v_deltas || freed_slots(v_freed));
end $$;

-- What it moves that so many attempts of these lines have ended, a line for each.
create function freed_slots(p_lines bigint[]) returns line_delta[] language plpgsql stable as $$
#variable_conflict use_column
begin
  return array(
    select row(line, 0, 0, 0, 0, -count(*)::integer, null, null, null)::line_delta from unnest(p_lines) u(line) group by line);
end $$;

-- Ends tasks that no attempt holds, in the order given. p_inherited: because of others that they depend on.
create function end_waiting(p_now bigint, p_seqs bigint[], p_state text, p_error text, p_inherited boolean) returns void
language plpgsql as $$
#variable_conflict use_column
declare
  v_many integer[] := array[cardinality(p_seqs)];
  v_deltas line_delta[];
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
    select t.seq, t.tenant, t.line, t.rank, t.resting_state, t.batch, t.session, t.origin, t.schedule, t.callback_url,
           t.has_dependants, r.task_seq is not null as ready, t.parked = 'asking' as asking, t.concurrency_key, u.place
      from unnest(p_seqs) with ordinality u(seq, place) join task t on t.seq = u.seq
      left join ready r on r.line = t.line and r.rank = t.rank and r.task_seq = t.seq),
  gone as (
    delete from ready r using waiting w
     where r.line = w.line and r.rank = w.rank and r.task_seq = w.seq and w.ready),
  settled as (
    update task t set resting_state = p_state, parked = null, completed_at = p_now, error = p_error
      from waiting w where t.seq = w.seq)
  select array_agg(row(line, -1, -(origin is not null)::integer, -(resting_state = 'queued' and not ready)::integer,
                       -ready::integer, 0, null, null, null)::line_delta),
         array_agg(tenant order by place), array_agg(resting_state order by place),
         array_agg(row(batch, -(ready or coalesce(asking, false))::integer, -1)::batch_delta) filter (where batch is not null),
         array_agg(seq::text) filter (where ready and concurrency_key is not null),
         bool_or(session is not null), bool_or(callback_url is not null), bool_or(has_dependants),
         bool_or(schedule is not null)
    into v_deltas, v_tenants, v_from, v_batches, v_keys, v_in_sessions, v_calls_back, v_has_dependants, v_ends_runs from waiting;
  v_first := take_event_numbers(v_many[1]);
  perform tell(v_first, p_now, array_fill('task.' || p_state, v_many), v_tenants, p_seqs,
               array_fill(case when p_error is not null then json_build_object('error', p_error)::text end, v_many));
  if v_calls_back then perform add_deliveries(p_now, v_first, p_seqs); end if;
  if v_has_dependants then perform add_releases(p_seqs, case when p_inherited then p_error end); end if;
  if v_ends_runs then perform end_runs(p_now, p_seqs, null); end if;
  if v_in_sessions then perform leave_turns(p_seqs); end if;
  if v_batches is not null then perform move_batches(v_batches); end if;
  if v_keys is not null then perform add_note('keys', v_keys); end if;
  perform apply_deltas(v_deltas);
  perform count_moves(v_tenants, v_from, array_fill(p_state, v_many));
end $$;

-- Fails waiting tasks whose deadline has passed. Running ones are passed over: their runner ends them.
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
    select n.tenant, n.agent, n.lane from unnest(v_seqs) with ordinality u(seq, place)
      join task t on t.seq = u.seq join line n on n.id = t.line order by u.place;
end $$;
`;
