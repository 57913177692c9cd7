import { FRONT_RANK } from "../../../model/priority.ts";
import { WORKER_ID_PREFIX } from "../../../model/worker.ts";
import { readSql } from "../connection/sql-file.ts";
import { RANK_IN_ITS_LANE } from "./rank.ts";

/** Variables that a function with `endAttempts` has to declare. */
export const ENDING_VARIABLES = `
  v_deltas queue_delta[];
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
  v_in_batches boolean;
  v_in_sessions boolean;
  v_calls_back boolean;
  v_has_dependants boolean;
  v_ends_runs boolean;
  v_first bigint;`;

/** Whether the task shows attempt `l` when it ends: once it has begun, or if a worker has it. */
export function leavesTrace(l: string): string {
  return `(${l}.state = 'running' or starts_with(${l}.node, '${WORKER_ID_PREFIX}'))`;
}

/** Of the task of `e`. A plan that joins by seq, made while there are few tasks, would read all of them when there are many. */
const ADDRESS_OF_TASK =
  "cross join lateral (select ctid as address from task where seq = e.task_seq offset 0)";

/** Appends the events of the ends, and adds deliveries. */
export const APPEND_ENDS = `
    v_first := take_event_numbers(cardinality(v_seqs));
    perform append_events(v_first, p_now, v_types, v_tenants, v_seqs, v_data);
    if v_calls_back then perform add_deliveries(p_now, v_first, v_seqs); end if;`;

/** The same if some may leave no event. Those do not end their task, and neither do the others of the call. */
const APPEND_TRACED_ENDS = `
    if array_position(v_types, null) is null then ${APPEND_ENDS}
    else
      perform append_events(take_event_numbers(count(*)), p_now, array_agg(type order by n), array_agg(tenant order by n),
                            array_agg(seq order by n), array_agg(data order by n))
         from unnest(v_types, v_tenants, v_seqs, v_data) with ordinality u(type, tenant, seq, data, n)
        where type is not null having count(*) > 0;
    end if;`;

/**
 * Ends attempts: with their task (done, failed, cancelled) or alone (queued, delayed). `ended` defines a query of that name,
 * which takes these attempts away and has the columns of ended_attempt. The caller records what this moves in agent queues:
 * v_freed has the agent queue of each attempt that ended with its task, v_deltas the moves of the others. This is text rather
 * than a function, because passing rows from one statement to the next as an array costs more than ending the attempts.
 */
export function endAttempts(ended: string, appends = APPEND_ENDS): string {
  return `
  with ${ended},
  settled as (
    update task t
       set resting_state = e.state,
           completed_at = case when e.final then p_now end,
           -- An attempt that has not begun leaves no trace.
           executions = case when e.begun then e.attempt else t.executions end,
           started_at = coalesce(t.started_at, case when e.begun then e.started_at end),
           last_started_at = case when e.final and e.begun then e.started_at end,
           last_outcome = case when e.final and e.begun then e.outcome end,
           last_node = case when e.final and e.begun then e.node end,
           result = e.result,
           error = case when e.final then e.error end,
           parked = case when e.state = 'queued' and t.concurrency_key is not null then 'asking' end,
           run_at = case when e.state = 'delayed' then e.run_at else t.run_at end,
           -- A pre-empted task stays in front until it fails by itself.
           rank = case when e.outcome = 'preempted' then ${FRONT_RANK}
                       when e.state = 'delayed' and t.rank = ${FRONT_RANK} then ${RANK_IN_ITS_LANE} else t.rank end,
           preemptions_left = t.preemptions_left - case when e.outcome = 'preempted' then 1 else 0 end,
           input_tokens = case when e.input_tokens is null then t.input_tokens
                               else coalesce(t.input_tokens, 0) + e.input_tokens end,
           output_tokens = case when e.output_tokens is null then t.output_tokens
                                else coalesce(t.output_tokens, 0) + e.output_tokens end,
           context_window = coalesce(e.context_window, t.context_window),
           retry_count = t.retry_count + case when e.counted then 1 else 0 end
      from (select *, state in ('done', 'failed', 'cancelled') as final from ended) e
     ${ADDRESS_OF_TASK} a
     where t.ctid = a.address
    returning e.n, t.seq, e.token, t.tenant, t.rank, e.line, e.node, e.attempt, e.started_at, e.begun, e.state, e.final, e.outcome,
              e.error, e.run_at, e.context_tokens, e.context_window, e.summary, t.batch, t.session, t.concurrency_key, t.parked,
              (t.origin is not null)::integer as exempt, t.schedule, t.callback_url, t.has_dependants),
  tried as (
    insert into attempt (task_seq, number, started_at, ended_at, outcome, error, node)
    select seq, attempt, started_at, p_now, outcome, error, node from settled where not final and begun),
  back as (
    insert into ready (line, rank, task_seq) select line, rank, seq from settled where state = 'queued' and parked is null)
  select array_agg(case when state = 'queued' and parked is null
                        then row(line, 1, exempt, 0, 1, -1, null, rank, seq)::queue_delta
                        else row(line, 1, exempt, (parked is not null)::integer, 0, -1, null, null, null)::queue_delta end) filter (where not final),
         array_agg(line) filter (where final),
         array_agg(seq order by n), array_agg(token order by n), array_agg(tenant order by n), array_agg(state order by n),
         array_agg(case when outcome is null then null when outcome = 'preempted' then 'task.preempted'
                        else case state when 'done' then 'task.completed' when 'failed' then 'task.failed'
                                        when 'cancelled' then 'task.cancelled' else 'task.retrying' end end order by n),
         array_agg(case when outcome = 'preempted' then json_build_object('attempt', attempt, 'error', error)::text
                        when not final then json_build_object('attempt', attempt, 'error', error,
                                              'retryAt', coalesce(run_at, p_now), 'state', state)::text
                        when error is not null then json_build_object('error', error)::text end order by n),
         array_agg(context_tokens order by n), array_agg(context_window order by n), array_agg(summary order by n),
         -- A task that goes back to the queue keeps its slot in the batch.
         array_agg(row(batch, -1, -final::integer)::batch_delta) filter (where batch is not null and state <> 'queued'),
         array_agg(seq::text) filter (where concurrency_key is not null),
         bool_or(session is not null), bool_or(final and callback_url is not null), bool_or(final and has_dependants),
         bool_or(final and schedule is not null)
    into v_deltas, v_freed, v_seqs, v_tokens, v_tenants, v_states, v_types, v_data, v_context_tokens, v_context_windows,
         v_summaries, v_batches, v_keys, v_in_sessions, v_calls_back, v_has_dependants, v_ends_runs
    from settled;
  if v_seqs is not null then
    ${appends}
    ${FOLLOW_UP}
    if v_batches is not null then perform move_batches(v_batches); end if;
    perform count_moves(v_tenants, array_fill('queued'::text, array[cardinality(v_states)]), v_states);
  end if;`;
}

/**
 * The same for attempts that are all done, with nothing to write besides their results: most are. Fewer columns are written and
 * sorted. Those that were assigned have begun: they join v_begun.
 */
export function endDoneAttempts(ended: string, appends: string): string {
  return `
  with ${ended},
  settled as (
    update task t
       set resting_state = 'done', completed_at = p_now, executions = e.attempt,
           started_at = coalesce(t.started_at, e.started_at), last_started_at = e.started_at, last_outcome = 'done',
           last_node = e.node, result = e.result
      from ended e
     ${ADDRESS_OF_TASK} a
     where t.ctid = a.address
    returning e.n, t.seq, e.token, t.tenant, e.line, e.attempt, e.state, e.report, e.wave, t.batch, t.session, t.concurrency_key,
              t.schedule, t.callback_url, t.has_dependants)
  select array_agg(line order by n), array_agg(seq order by n), array_agg(token order by n), array_agg(tenant order by n),
         array_agg(row(seq, token, tenant, '"attempt":' || attempt, coalesce(wave, 0), report)::begun_attempt order by n)
           filter (where state = 'assigned'),
         array_agg(seq::text) filter (where concurrency_key is not null),
         bool_or(batch is not null), bool_or(session is not null), bool_or(callback_url is not null), bool_or(has_dependants),
         bool_or(schedule is not null)
    into v_freed, v_seqs, v_tokens, v_tenants, v_assigned, v_keys, v_in_batches, v_in_sessions, v_calls_back, v_has_dependants, v_ends_runs
    from settled;
  v_begun := v_begun || v_assigned;
  if v_seqs is not null then
    v_states := array_fill('done'::text, array[cardinality(v_seqs)]);
    v_types := array_fill('task.completed'::text, array[cardinality(v_seqs)]);
    v_data := array_fill(null::text, array[cardinality(v_seqs)]);
    ${appends}
    ${FOLLOW_UP}
    if v_in_batches then
      perform move_batches(array(
        select row(t.batch, -1, -1)::batch_delta from unnest(v_seqs) u(seq)
         cross join lateral (select batch from task where seq = u.seq offset 0) t where t.batch is not null));
    end if;
    perform count_moves(v_tenants, array_fill('queued'::text, array[cardinality(v_states)]), v_states);
  end if;`;
}

/** What follows from the ends of attempts v_seqs. */
const FOLLOW_UP = `
    if v_has_dependants then perform add_releases(v_seqs, null); end if;
    if v_ends_runs then perform end_runs(p_now, v_seqs, v_summaries); end if;
    if v_in_sessions then perform end_session_attempts(v_seqs, v_states, v_context_tokens, v_context_windows); end if;
    if v_keys is not null then perform defer_work('keys', v_keys); end if;`;

/** Functions that end attempts and tasks. Finish, cancel, rescue and expire all use them. */
export const ENDING_FUNCTIONS = readSql(new URL("./end-attempt.sql", import.meta.url), {
  ENDING_VARIABLES,
  END_ATTEMPTS: endAttempts("ended as (select * from unnest(p_ended))", APPEND_TRACED_ENDS),
});
