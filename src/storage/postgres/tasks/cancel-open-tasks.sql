-- Cancels tasks that have not ended, running or waiting, and returns them in this order.
create function cancel_open_tasks(p_now bigint, p_seqs bigint[], p_error text) returns json language plpgsql as $$
#variable_conflict use_column
declare
  v_ended ended_attempt[];
  v_assigned bigint[];
  v_waiting bigint[];
  v_last_release bigint;
  v_cancelled json;
begin
  if cardinality(p_seqs) = 0 then return '[]'; end if;
  select json_agg(json_build_object('id', t.id, 'token', l.token, 'agent', n.agent, 'lane', n.lane) order by u.n),
         array_agg(t.seq order by u.n) filter (where l.token is null)
    into v_cancelled, v_waiting
    from unnest(p_seqs) with ordinality u(seq, n)
   cross join lateral (select id, seq, line from task where seq = u.seq offset 0) t
   cross join lateral (select agent, lane from line where id = t.line offset 0) n
    left join lateral (select token from lease where task_seq = t.seq offset 0) l on true;
  with gone as (
    delete from lease l using unnest(p_seqs) with ordinality u(seq, n) where l.task_seq = u.seq returning l.*, u.n)
  select array_agg(row(n, task_seq, token, node, line, attempt, started_at, 'cancelled', 'cancelled', false, null, p_error, null,
                       null, null, null, null, null, true)::ended_attempt),
         array_agg(task_seq order by n) filter (where state = 'assigned')
    into v_ended, v_assigned from gone;
  -- They may have begun.
  if v_assigned is not null then perform append_starts(p_now, v_assigned); end if;
  select coalesce(max(seq), 0) into v_last_release from release;
  if v_ended is not null then perform end_attempts(p_now, v_ended); end if;
  if v_waiting is not null then perform end_waiting(p_now, v_waiting, 'cancelled', p_error, false); end if;
  -- A task that depends on several of them names the first as the reason, whether that was running or not.
  if v_ended is not null and v_waiting is not null then
    with added as (delete from release where seq > v_last_release returning parent_seq, error)
    insert into release (parent_seq, error)
    select a.parent_seq, a.error from added a join unnest(p_seqs) with ordinality u(seq, n) on u.seq = a.parent_seq
     order by u.n;
  end if;
  return v_cancelled;
end $$;
