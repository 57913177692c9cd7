-- Adds a task that is done to a session: nothing runs for it.
create function post_answer(p_now bigint, p_tasks json, p_result text) returns void language plpgsql as $$
#variable_conflict use_column
declare
  v_now bigint := take_write_lock(p_now);
  v_sent inserted_task;
begin
  perform 1 from already_inserted(array[p_tasks -> 0 ->> 'id']);
  if found then return; end if;
  select * into v_sent from insert_json_tasks(v_now, p_tasks, :NO_LIMIT, :NO_LIMIT, :NO_LIMIT);
  perform end_waiting(v_now, array[v_sent.seq], 'done', null, false);
  update task set result = p_result where seq = v_sent.seq;
  perform settle_moves(v_now, :RELEASED_MAX);
  :PREEMPT
end $$;
