-- Pre-empts running tasks of workers for critical ones that find no free slot. Returns the tokens of the attempts.
create function preempt_for_workers(p_now bigint, p_limit integer) returns bigint[] language plpgsql as $$
#variable_conflict use_column
declare
  v_now bigint;
  v_critical record;
  v_able text[];
  v_worker text;
  v_reserved text[] := '{}';
  v_lane text;
  v_lane_free bigint;
  v_lease lease;
  v_ended ended_attempt[] := '{}';
  v_tokens bigint[] := '{}';
begin
  -- Usually nothing can be pre-empted.
  perform 1 from lease l join worker w on w.id = l.node where l.priority is not null limit 1;
  if not found then return v_tokens; end if;
  v_now := take_write_lock(p_now);
  for v_critical in
    select c.*
      from (select n.id as line, n.lane, n.tenant, r.rank, r.task_seq as seq, t.id, l.strategy, l.total, l.inflight,
                   row_number() over (partition by n.id order by r.rank, r.task_seq) <= coalesce(:AGENT_LIMIT, 2147483647) as usable
              from line n
              join lane l on l.name = n.lane
              join tenant_line o on o.tenant = n.tenant and o.lane = n.lane and not o.disabled
             cross join lateral (
               select rank, task_seq from ready where line = n.id and rank <= :PRIORITY_CRITICAL order by rank, task_seq limit p_limit) r
              join task t on t.seq = r.task_seq
             where n.head_rank <= :PRIORITY_CRITICAL and n.standing <> 0 and not :IS_ALONE and :IS_FOR_WORKERS
             order by n.lane, r.rank, r.task_seq limit p_limit) c
     order by c.lane, c.rank, c.seq
  loop
    continue when not v_critical.usable;
    if v_lane is distinct from v_critical.lane then
      v_lane := v_critical.lane;
      v_lane_free := coalesce(v_critical.total - v_critical.inflight, 2147483647);
    end if;
    perform 1 from tenant_line t where t.lane = v_lane and t.tenant = v_critical.tenant and t.inflight > t.lane_max;
    continue when found;
    v_able := array(
      select w.id from worker w cross join (select * from line where id = v_critical.line) n
       where not w.lost and not w.draining and w.tenant = n.tenant and :CAN_WORKER_RUN
         and (greatest(w.registered_at, w.polled_at) >= v_now - :NOT_POLLING_MS
              or w.slots <= (select count(*) from lease l where l.node = w.id))
       order by w.id);
    select w.id into v_worker from worker w
     where w.id = any (v_able)
       and w.slots - (select count(*) from lease l where l.node = w.id)
             - (select count(*) from unnest(v_reserved) u(id) where u.id = w.id) > 0
     order by w.id limit 1;
    if found and v_lane_free > 0 then
      v_reserved := v_reserved || v_worker;
      v_lane_free := v_lane_free - 1;
      continue;
    end if;
    delete from lease where task_seq = (
      select l.task_seq from lease l
       where l.lane = v_lane and l.tenant = v_critical.tenant and l.priority is not null and l.node = any (v_able)
       order by l.priority desc, l.token desc limit 1)
    returning * into v_lease;
    continue when not found;
    v_reserved := v_reserved || v_lease.node;
    v_tokens := v_tokens || v_lease.token;
    v_ended := array[row(1, v_lease.task_seq, v_lease.token, v_lease.node, v_lease.line, v_lease.attempt, v_lease.started_at, 'queued',
                         'preempted', false, null, ':PREEMPTION_ERROR', null, null, null, null, null, null, true)::ended_attempt];
    perform end_attempts(v_now, v_ended);
    -- The tenant gets the freed slot for a critical task: one more start that may go ahead of fairness.
    update tenant_line t
       set owed = t.owed + 1, ahead_streak = t.ahead_streak - case when v_critical.strategy = 'fair-fifo' then 1 else 0 end
     where t.tenant = v_critical.tenant and t.lane = v_lane;
  end loop;
  if cardinality(v_tokens) = 0 then return v_tokens; end if;
  perform refresh_tenants(array(select distinct tenant from tenant_line where owed > 0));
  perform settle_moves(v_now, :RELEASED_MAX);
  -- The tasks that were put back are not new critical tasks.
  perform take_deferred_work('new_critical_tasks');
  return v_tokens;
end $$;
