-- Compares columns of agent queues with what follows from their other columns and from their first ready task.
create function count_agent_queue_flags(p_queues bigint[]) returns table (
  id bigint, column_name text, stored bigint, counted bigint) language sql stable as $$
  select n.id, c.*
    from line n
    join lane l on l.name = n.lane
    left join lateral (select rank, task_seq from ready where line = n.id order by rank, task_seq limit 1) f on true
   cross join lateral (values
     ('head_rank', n.head_rank, f.rank),
     ('head_seq', n.head_seq, f.task_seq),
     ('room', n.room::bigint, greatest(:ROOM, 0)::bigint),
     ('ahead', n.ahead::integer::bigint,
      (n.head_rank is not null and (n.head_rank <= :PRIORITY_CRITICAL or l.strategy = 'priority-fifo'))::integer::bigint)) c
   where n.id = any (p_queues)
$$;

-- Compares the counters of agent queues with the rows.
create function count_agent_queues(p_queues bigint[]) returns table (
  id bigint, name text, lane text, column_name text, stored bigint, counted bigint) language sql stable as $$
  select n.id, 'line ' || n.lane || '/' || n.tenant || '/' || n.agent, n.lane, c.*
    from line n
    left join (select line, count(*) as tasks from ready where line = any (p_queues) group by line) r on r.line = n.id
    left join (select line, count(*) as tasks from lease where line = any (p_queues) group by line) h on h.line = n.id
    left join (select line, count(*) as tasks from task
                where listed_state in ('waiting_dependency', 'delayed') and line = any (p_queues) group by line) e
           on e.line = n.id
    left join (select line, count(*) as tasks from (:PARKED_TASKS) t where line = any (p_queues) group by line) p on p.line = n.id
    left join (select line, count(*) as tasks
                 from (select r.line, r.task_seq from ready r
                       union all select line, seq from task where listed_state in ('waiting_dependency', 'delayed')
                       union all select line, seq from (:PARKED_TASKS) t) w
                where line = any (p_queues) and (select t.origin from task t where t.seq = w.task_seq) is not null
                group by line) x on x.line = n.id
   cross join lateral (values
     ('waiting', n.waiting::bigint, coalesce(r.tasks, 0) + coalesce(e.tasks, 0) + coalesce(p.tasks, 0)),
     ('exempt', n.exempt, coalesce(x.tasks, 0)),
     ('parked', n.parked, coalesce(p.tasks, 0)),
     ('ready', n.ready, coalesce(r.tasks, 0)),
     ('inflight', n.inflight, coalesce(h.tasks, 0))) c
   where n.id = any (p_queues)
  union all
  select n.id, 'line ' || n.lane || '/' || n.tenant || '/' || n.agent, n.lane, f.column_name, f.stored, f.counted
    from count_agent_queue_flags(p_queues) f join line n on n.id = f.id
$$;

create function recount_one(p_now bigint, p_random float8, p_tasks_max bigint)
returns table (counter text, stored bigint, counted bigint) language plpgsql as $$
#variable_conflict use_column
declare
  v_queue bigint;
begin
  perform take_write_lock(p_now);
  if (select coalesce(sum(tasks), 0) from tally where state in ('waiting_dependency', 'delayed'))
     + (select coalesce(sum(parked), 0) from line) > p_tasks_max then
    return;
  end if;
  select id into v_queue from line
   where id >= ceil(p_random * (select max(id) from line)) and waiting + inflight <= p_tasks_max order by id limit 1;
  return query
    select c.name || ' ' || c.column_name, c.stored, c.counted
      from count_agent_queues(array[v_queue]) c where c.stored is distinct from c.counted;
  if not found then
    return query select * from recount_tenant(v_queue, p_tasks_max);
    return;
  end if;
  update lane l
     set waiting = l.waiting + c.waiting, inflight = l.inflight + c.inflight,
         exempt = l.exempt + case when exists (select 1 from line n join tenant t on t.id = n.tenant and t.disabled where n.id = v_queue)
                                  then c.waiting else c.exempt end
    from (select lane, sum(counted - stored) filter (where column_name = 'waiting') as waiting,
                 sum(counted - stored) filter (where column_name = 'exempt') as exempt,
                 sum(counted - stored) filter (where column_name = 'inflight') as inflight
            from count_agent_queues(array[v_queue]) group by lane) c
   where l.name = c.lane;
  update line n
     set (waiting, exempt, parked, ready, inflight, head_rank, head_seq) = (
           select max(counted) filter (where column_name = 'waiting'),
                  max(counted) filter (where column_name = 'exempt'),
                  max(counted) filter (where column_name = 'parked'),
                  max(counted) filter (where column_name = 'ready'),
                  max(counted) filter (where column_name = 'inflight'),
                  max(counted) filter (where column_name = 'head_rank'),
                  max(counted) filter (where column_name = 'head_seq')
             from count_agent_queues(array[v_queue])),
         room = 0, startable = false
   where n.id = v_queue;
  perform refresh_startable(array(
    select s.id from line n join line s on s.tenant = n.tenant and s.agent = n.agent where n.id = v_queue));
  return query select * from recount_tenant(v_queue, 9e18::bigint);
end $$;

-- Compares the counters of tenants with their agent queues.
create function count_tenants(p_ids bigint[]) returns table (
  id bigint, name text, column_name text, stored bigint, counted bigint) language sql stable as $$
  select t.id, 'tenant ' || t.lane || '/' || t.tenant, c.*
    from tenant_line t
    left join tenant o on o.id = t.tenant
    left join lateral (
      select sum(n.waiting) as waiting, sum(n.exempt) as exempt, sum(n.inflight) as inflight, sum(n.room) as supply,
             count(*) filter (where n.startable and n.ahead) as urgent_lines
        from line n where n.tenant = t.tenant and n.lane = t.lane) n on true
   cross join lateral (values
     ('waiting', t.waiting::bigint, coalesce(n.waiting, 0)),
     ('exempt', t.exempt, coalesce(n.exempt, 0)),
     ('inflight', t.inflight, coalesce(n.inflight, 0)),
     ('supply', t.supply, coalesce(n.supply, 0)),
     ('urgent_lines', t.urgent_lines, coalesce(n.urgent_lines, 0)),
     ('max_inflight', t.max_inflight, o.max_inflight),
     ('lane_max', t.lane_max, (select case when l.second_tenant then l.per_tenant end from lane l where l.name = t.lane)),
     ('crowded', t.crowded::integer, (select l.crowded::integer from lane l where l.name = t.lane)),
     ('disabled', t.disabled::integer, coalesce(o.disabled, false)::integer),
     ('turn_unowed', t.turn_unowed::integer, case when t.crowded and t.startable then (t.owed = 0)::integer end),
     ('turn_inflight', t.turn_inflight, case when t.crowded and t.startable then t.inflight end),
     ('turn_served', t.turn_served, case when t.crowded and t.startable then t.last_served end),
     ('startable', t.startable::integer, (not t.disabled and :TENANT_ROOM > 0)::integer)) c
   where t.id = any (p_ids)
$$;

-- Recounts the tenant of an agent queue and repairs wrong counters. It skips a tenant with so many agents that this would
-- delay other writers.
create function recount_tenant(p_queue bigint, p_queues_max bigint)
returns table (counter text, stored bigint, counted bigint) language plpgsql as $$
#variable_conflict use_column
declare
  v_own tenant_line;
begin
  select t.* into v_own from line n join tenant_line t on t.tenant = n.tenant and t.lane = n.lane where n.id = p_queue;
  if (select count(*) from (select 1 from line where tenant = v_own.tenant limit p_queues_max) n) >= p_queues_max then
    return;
  end if;
  return query
    select c.name || ' ' || c.column_name, c.stored, c.counted
      from count_tenants(array[v_own.id]) c where c.stored is distinct from c.counted;
  if not found then return; end if;
  update tenant_line t
     set (waiting, exempt, inflight, supply, urgent_lines) = (
           select max(counted) filter (where column_name = 'waiting'),
                  max(counted) filter (where column_name = 'exempt'),
                  max(counted) filter (where column_name = 'inflight'),
                  max(counted) filter (where column_name = 'supply'),
                  max(counted) filter (where column_name = 'urgent_lines')
             from count_tenants(array[v_own.id])),
         startable = false
   where t.id = v_own.id;
  perform refresh_tenants(array[v_own.tenant]);
end $$;
