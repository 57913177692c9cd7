/** Functions that end attempts and tasks. Finishing, cancelling, rescuing and expiring all come through here. */
export const ENDING_FUNCTIONS = `
-- An attempt whose lease was taken away, and what becomes of its task. n: order within the call.
create type ended_attempt as (
  n bigint, task_seq bigint, node text, line bigint, attempt integer, started_at bigint,
  state text, outcome text, counted boolean, result text, error text, run_at bigint);

-- Ends attempts: with their task (done, failed, cancelled), or alone (queued, delayed).
create function end_attempts(p_now bigint, p_ended ended_attempt[]) returns void language plpgsql as $$
#variable_conflict use_column
declare
  v_first bigint;
  v_deltas line_delta[];
  v_tenants text[];
  v_states text[];
  v_tasks bigint[];
begin
  v_first := take_event_numbers(cardinality(p_ended));
  with ended as materialized (
    select e.*, e.state in ('done', 'failed', 'cancelled') as final, row_number() over (order by e.n) as place
      from unnest(p_ended) e),
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
           run_at = case when e.state = 'delayed' then e.run_at else t.run_at end,
           retry_count = t.retry_count + case when e.counted then 1 else 0 end
      from ended e where t.seq = e.task_seq
    returning t.seq, t.tenant, t.rank),
  tried as (
    insert into attempt (task_seq, number, started_at, ended_at, outcome, error, node)
    select task_seq, attempt, started_at, p_now, outcome, error, node from ended where not final),
  back as (
    insert into ready (line, rank, task_seq)
    select e.line, s.rank, s.seq from ended e join settled s on s.seq = e.task_seq where e.state = 'queued'),
  told as (
    insert into event (seq, type, at, tenant, task_seq, data)
    select v_first + e.place - 1,
           case e.state when 'done' then 'task.completed' when 'failed' then 'task.failed'
                        when 'cancelled' then 'task.cancelled' else 'task.retrying' end,
           p_now, s.tenant, e.task_seq,
           case when not e.final then json_build_object(
                  'attempt', e.attempt, 'error', e.error, 'retryAt', coalesce(e.run_at, p_now), 'state', e.state)::text
                when e.error is not null then json_build_object('error', e.error)::text end
      from ended e join settled s on s.seq = e.task_seq)
  select array_agg(row(e.line, case when e.final then 0 else 1 end, case when e.state = 'queued' then 1 else 0 end, -1,
                       null, case when e.state = 'queued' then s.rank end,
                       case when e.state = 'queued' then s.seq end)::line_delta),
         array_agg(s.tenant), array_agg(e.state), array_agg(1)
    into v_deltas, v_tenants, v_states, v_tasks
    from ended e join settled s on s.seq = e.task_seq;
  perform apply_deltas(v_deltas);
  perform count_tasks(v_tenants || v_tenants, v_states || array_fill('queued'::text, array[cardinality(v_states)]),
                      v_tasks || array_fill(-1::bigint, array[cardinality(v_tasks)]));
end $$;

-- Ends tasks that no attempt holds, in the order given.
create function end_waiting(p_now bigint, p_seqs bigint[], p_state text, p_error text) returns void
language plpgsql as $$
#variable_conflict use_column
declare
  v_first bigint;
  v_deltas line_delta[];
  v_tenants text[];
  v_from text[];
begin
  v_first := take_event_numbers(cardinality(p_seqs));
  with waiting as materialized (
    select t.seq, t.tenant, t.line, t.rank, t.resting_state, u.place
      from unnest(p_seqs) with ordinality u(seq, place) join task t on t.seq = u.seq),
  gone as (
    delete from ready r using waiting w
     where r.line = w.line and r.rank = w.rank and r.task_seq = w.seq and w.resting_state = 'queued'),
  settled as (
    update task t set resting_state = p_state, completed_at = p_now, error = p_error
      from waiting w where t.seq = w.seq),
  told as (
    insert into event (seq, type, at, tenant, task_seq, data)
    select v_first + place - 1, 'task.' || p_state, p_now, tenant, seq,
           case when p_error is not null then json_build_object('error', p_error)::text end
      from waiting)
  select array_agg(row(line, -1, case when resting_state = 'queued' then -1 else 0 end, 0, null, null, null)::line_delta),
         array_agg(tenant), array_agg(resting_state)
    into v_deltas, v_tenants, v_from from waiting;
  perform apply_deltas(v_deltas);
  perform count_tasks(v_tenants || v_tenants, v_from || array_fill(p_state, array[cardinality(v_from)]),
                      array_fill(-1::bigint, array[cardinality(v_from)]) || array_fill(1::bigint, array[cardinality(v_from)]));
end $$;

-- Fails waiting tasks whose deadline has passed. Running ones are passed over: their runner ends them.
create function expire_overdue(p_now bigint, p_limit integer) returns integer language plpgsql as $$
#variable_conflict use_column
declare
  v_seqs bigint[];
begin
  v_seqs := array(
    select t.seq from task t
     where t.deadline is not null and t.resting_state in ('waiting_dependency', 'delayed', 'queued')
       and t.deadline <= p_now and not exists (select 1 from lease l where l.task_seq = t.seq)
     order by t.deadline, t.seq limit p_limit);
  if cardinality(v_seqs) > 0 then perform end_waiting(p_now, v_seqs, 'failed', 'deadline exceeded while queued'); end if;
  return cardinality(v_seqs);
end $$;
`;
