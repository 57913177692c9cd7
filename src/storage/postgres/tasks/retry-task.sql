create function retry_task(p_now bigint, p_tenant text, p_id text, p_dependants boolean, p_bounds json)
returns table (was text, by_id text, by_state text, seq bigint, state text, "position" integer, created_at bigint,
               run_at bigint, deadline bigint, unserved boolean)
language plpgsql as $$
#variable_conflict use_column
declare
  v_now bigint := take_write_lock(p_now);
  v_task task;
  v_by record;
  v_requeued record;
begin
  select * into v_task from task t where t.id = p_id and :IS_OF_TENANT;
  if not found then return; end if;
  perform flush_with_commit();
  seq := v_task.seq;
  if v_task.resting_state not in ('failed', 'cancelled') then
    was := coalesce((select l.state from lease l where l.task_seq = v_task.seq), v_task.resting_state);
    return next;
    return;
  end if;
  if :IS_OVERDUE then
    was := 'overdue';
    return next;
    return;
  end if;
  select * into v_by from blocking_dependency(v_task);
  if found then
    was := 'blocked';
    by_id := v_by.id;
    by_state := v_by.state;
    return next;
    return;
  end if;
  v_requeued := requeue_task(v_now, v_task);
  if p_bounds is not null then perform count_bounded(v_now, p_bounds, array[v_task.seq]); end if;
  if p_dependants then perform add_come_back(v_task, v_task.id); end if;
  perform settle_moves(v_now, :RELEASED_MAX);
  :PREEMPT
  return query
    select null::text, null::text, null::text, v_task.seq, v_requeued.o_state, v_requeued.o_position, v_task.created_at,
           v_task.run_at, v_requeued.o_deadline, v_requeued.o_unserved;
end $$;
