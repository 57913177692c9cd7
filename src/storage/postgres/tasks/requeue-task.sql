-- The dependency of a task that has ended without being done; a row of nulls: it is no longer stored; no row: there is
-- none.
create function blocking_dependency(p_task task) returns table (id text, state text) language plpgsql stable as $$
#variable_conflict use_column
begin
  if p_task.dependencies = 0 then return; end if;
  return query
    select p.id, p.resting_state
      from dependency d cross join lateral (select seq, id, resting_state from task where seq = d.parent_seq offset 0) p
     where d.child_seq = p_task.seq and p.resting_state in ('failed', 'cancelled', 'rejected') order by p.seq limit 1;
  if not found and (select count(*) from dependency where child_seq = p_task.seq) < p_task.dependencies then
    return query select null::text, null::text;
  end if;
end $$;

-- How many dependencies of a task are not done, or no longer stored. offset 0: a plan made while there are few tasks would
-- otherwise read all of them when there are many.
create function count_unmet(p_seq bigint, p_dependencies integer) returns integer language plpgsql stable as $$
#variable_conflict use_column
begin
  return p_dependencies - (
    select count(*)
      from dependency d cross join lateral (select resting_state from task where seq = d.parent_seq offset 0) p
     where d.child_seq = p_seq and p.resting_state = 'done');
end $$;

-- Puts a failed or cancelled task back to where it waits. Its retries and its default deadline start anew.
create function requeue_task(p_now bigint, p_task task, out o_state text, out o_position integer, out o_deadline bigint, out o_unserved boolean)
language plpgsql as $$
#variable_conflict use_column
declare
  v_exempt integer := (p_task.origin is not null)::integer;
  v_unmet integer := count_unmet(p_task.seq, p_task.dependencies);
  v_position bigint;
  v_starts_at bigint := p_now;
  v_parked text;
  v_ready boolean;
  v_rank bigint;
begin
  p_task.line := current_agent_queue(p_task);
  delete from unserved where task_seq = p_task.seq;
  -- The attempt that ended the task becomes an earlier attempt.
  if p_task.last_started_at is not null then
    insert into attempt (task_seq, number, started_at, ended_at, outcome, error, node)
    values (p_task.seq, p_task.executions, p_task.last_started_at, p_task.completed_at, p_task.last_outcome,
            p_task.error, p_task.last_node);
  end if;
  o_position := 0;
  select n.standing = 2 into o_unserved from line n where n.id = p_task.line;
  o_deadline := p_task.deadline;
  if v_unmet > 0 then
    o_state := 'waiting_dependency';
    if p_task.deadline_after_ms is not null then o_deadline := null; end if;
  else
    -- The requested run_at stays valid; the backoff of an earlier retry does not.
    if p_task.executions = 0 then v_starts_at := greatest(p_now, p_task.run_at); end if;
    o_deadline := coalesce(v_starts_at + p_task.deadline_after_ms, o_deadline);
    o_state := case when v_starts_at > p_now then 'delayed' else 'queued' end;
  end if;
  if o_state = 'queued' then
    if p_task.session is null then v_parked := :PARKED_BY; end if;
    select sum(s.waiting)::integer + 1 into o_position
      from line n join line s on s.tenant = n.tenant and s.agent = n.agent where n.id = p_task.line;
  end if;
  v_position := reenter_session(p_task);
  update task t
     set line = p_task.line, resting_state = o_state, parked = v_parked, place = v_position, unmet = v_unmet, position = o_position, retry_count = 0, losses = 0,
         completed_at = null, deadline = o_deadline, rank = :RANK_IN_ITS_LANE,
         last_started_at = null, last_outcome = null, last_node = null, error = null
   where t.seq = p_task.seq
  returning t.rank into v_rank;
  v_ready := o_state = 'queued' and v_parked is null and p_task.session is null;
  if v_ready then
    insert into ready (line, rank, task_seq) values (p_task.line, v_rank, p_task.seq);
    perform apply_deltas(array[row(p_task.line, 1, v_exempt, 0, 1, 0, null, v_rank, p_task.seq)::queue_delta]);
  else
    perform apply_deltas(array[
      row(p_task.line, 1, v_exempt, (v_parked is not null)::integer, 0, 0, null, null, null)::queue_delta]);
  end if;
  if p_task.batch is not null then
    perform move_batches(array[
      row(p_task.batch, (v_ready or v_parked is not distinct from 'asking')::integer, 1)::batch_delta]);
  end if;
  if v_parked = 'asking' then perform defer_work('keys', array[p_task.seq::text]); end if;
  perform count_moves(array[p_task.tenant], array[p_task.resting_state], array[o_state]);
  if o_state = 'queued' and p_task.session is not null then perform take_turns(p_now, array[p_task.seq]); end if;
  perform append_events(take_event_numbers(1), p_now, array['task.retrying'], array[p_task.tenant], array[p_task.seq],
               array[json_strip_nulls(json_build_object('attempt', p_task.executions, 'error', p_task.error,
                                                        'retryAt', v_starts_at, 'state', o_state))::text]);
  if p_task.schedule is not null then perform reopen_run(p_now, p_task.id); end if;
end $$;

-- The task that an error names as the dependency that caused a cancellation; null for any other error.
create function named_dependency(p_error text) returns text language sql immutable as $$
  select substring(p_error from '^dependency (\S+) (?:failed|cancelled|rejected)$')
$$;

-- Adds a release row that brings back the dependants that were cancelled because of this task; see dependency-error.ts.
create function add_come_back(p_task task, p_retried text) returns void language plpgsql as $$
begin
  if not p_task.has_dependants then return; end if;
  insert into release (parent_seq, error)
  values (p_task.seq, concat_ws(' ', 'retried', p_retried, named_dependency(p_task.error)));
end $$;

-- Queues dependants again that were cancelled because of a task, unless they could only end the same way. p_word: the text
-- that add_come_back stored.
create function bring_back(p_now bigint, p_parent bigint, p_children bigint[], p_word text) returns void
language plpgsql as $$
#variable_conflict use_column
declare
  v_words text[] := string_to_array(p_word, ' ');
  v_named text[] := v_words[2:] || (select p.id from task p where p.seq = p_parent);
  v_seq bigint;
  v_task task;
begin
  -- One by one: one may depend on another, which has to be queued first.
  foreach v_seq in array p_children loop
    select * into v_task from task t where t.seq = v_seq and t.resting_state = 'cancelled'
       and named_dependency(t.error) = any (v_named) and not (:IS_OVERDUE);
    continue when not found or exists (select 1 from blocking_dependency(v_task));
    perform requeue_task(p_now, v_task);
    perform add_come_back(v_task, v_words[2]);
  end loop;
end $$;
