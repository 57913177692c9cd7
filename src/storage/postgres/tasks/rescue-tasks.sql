-- p_max_lost: the process died, and a task that was lost with its process this often fails; null: the process is alive.
create function rescue_tasks(p_now bigint, p_node text, p_limit integer, p_max_lost integer)
returns table (state text, tenant text, agent text, lane text) language plpgsql as $$
#variable_conflict use_column
declare
  v_now bigint := take_write_lock(p_now);
  v_seqs bigint[];
  v_alone bigint[];
  v_ended ended_attempt[];
  v_assigned bigint[];
begin
  perform 1 from node where id = p_node and dead;
  if not found then return; end if;
  v_seqs := array(select task_seq from lease where node = p_node order by task_seq limit p_limit);
  if p_max_lost is not null then
    -- A task that had not begun to run was not lost with its process.
    with lost as (
      update task t set losses = t.losses + 1
        from lease l cross join lateral (select ctid as address from task where seq = l.task_seq offset 0) a
       where l.task_seq = any (v_seqs) and l.state = 'running' and t.ctid = a.address
      returning t.seq, t.losses, t.retry_count < t.max_retries_if_lost as rescuable)
    select array_agg(seq) into v_alone
      from lost where losses >= :ALONE_AFTER_LOSSES and losses < p_max_lost and rescuable;
    if v_alone is not null then perform move_to_alone(v_alone); end if;
  end if;
  with gone as (
    delete from lease l using unnest(v_seqs) u(seq)
     cross join lateral (select losses, retry_count, max_retries_if_lost from task where seq = u.seq offset 0) t
     where l.task_seq = u.seq
    returning l.*, t.losses >= p_max_lost is true as lost, t.losses,
              t.retry_count < t.max_retries_if_lost and t.losses >= p_max_lost is not true as rescuable)
  select array_agg(row(task_seq, task_seq, token, node, line, attempt, started_at,
                       case when rescuable then 'queued' else 'failed' end, 'lost', rescuable, null,
                       case when lost then 'lost ' || losses || case losses when 1 then ' time' else ' times' end else 'worker lost' end,
                       v_now, null, null, null, null, null, true)::ended_attempt),
         array_agg(task_seq order by task_seq) filter (where state = 'assigned')
    into v_ended, v_assigned from gone;
  if v_ended is null then return; end if;
  -- They may have begun.
  if v_assigned is not null then perform append_starts(v_now, v_assigned); end if;
  perform end_attempts(v_now, v_ended);
  perform settle_moves(v_now, :RELEASED_MAX);
  :PREEMPT
  return query
    select e.state, n.tenant, n.agent, n.lane from unnest(v_ended) e
     cross join lateral (select tenant, agent, lane from line where id = e.line offset 0) n order by e.task_seq;
end $$;
