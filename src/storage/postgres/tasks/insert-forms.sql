-- What tasks of a call have in common, and what follows for those that are accepted. ready: they can start once stored, if
-- their session admits them. waiting: all waiting tasks of the agent. *_counted: without those that admission does not
-- count; *_max: the limit of these.
create type task_form as (
  tenant text, agent text, line bigint, priority integer, rank bigint, state text, parked text, ready boolean, run_at bigint,
  deadline bigint, deadline_after_ms bigint, max_retries_if_lost integer, preemptions_left integer, batch text,
  session bigint, session_max integer, origin text, schedule bigint, concurrency_key text, callback_url text, parent_task text, root_task text,
  dependencies integer, unmet integer, waiting integer, agent_counted bigint, agent_max bigint, tenant_max bigint,
  tenant_disabled boolean, unserved boolean);

-- A new task of a session. n: index within the call, from 0. "full": the queue that was full, if one was.
create type session_task as (
  n bigint, seq bigint, state text, batch text, session bigint, session_max integer, origin text, "full" text);

-- The result of the insert of one task.
create type inserted_task as (
  seq bigint, id text, state text, "position" integer, created_at bigint, run_at bigint, deadline bigint, "full" text,
  queued bigint, repeats text, unserved boolean);

-- The results of a call: all tasks of a form have the same, unless "each" has a result for every task.
create type inserted_forms as (first_seq bigint, forms task_form[], "each" inserted_task[]);

-- Inserts tasks that share forms. p_form_of: the number of the form of each task, from 1. p_agent_positions: the position
-- of each task among those of its agent in this call, from 1.
create function insert_forms(
  p_now bigint, p_forms json, p_form_of integer[], p_agent_positions integer[], p_ids text[], p_specs text[], p_max_queue bigint,
  p_max_total bigint, p_max_agent bigint)
returns inserted_forms language plpgsql as $$
#variable_conflict use_column
declare
  v_count integer := cardinality(p_ids);
  v_first bigint;
  v_last bigint;
  v_queued bigint;
  v_forms task_form[];
  v_known boolean;
  v_alike boolean;
  v_fit boolean;
  v_sessioned boolean;
  v_dependent boolean;
  v_keyed boolean;
  v_plain boolean;
  v_held text[];
  v_full_queues text[];
  v_full_queued bigint[];
  v_agent_positions integer[] := p_agent_positions;
  v_session_tasks session_task[];
  v_turns bigint[];
  v_admitted boolean[];
  v_deltas queue_delta[];
  v_batches batch_delta[];
  v_seqs bigint[];
  v_tenants text[];
  v_states text[];
  v_tasks integer[];
  v_types text[];
  v_data text[];
  v_each inserted_task[];
begin
  loop
    select array_agg(row(tenant, agent, line, priority,
                         :RANK,
                         state, case when state = 'queued' and session is null then nullif(held_by, 'asking') end,
                         state = 'queued' and session is null and held_by is distinct from 'batch', run_at,
                         coalesce(deadline, case when unmet = 0 then greatest(p_now, run_at) + deadline_after_ms end),
                         case when deadline is null then deadline_after_ms end, max_retries_if_lost, preemptions_left, batch,
                         session_id, session_max, origin, schedule, concurrency_key, callback_url, parent_task, root_task, dependencies, unmet, waiting,
                         agent_counted, agent_max, tenant_max, tenant_disabled, unserved)::task_form),
           bool_and(line is not null and (session is null or session_id is not null)),
           min(tenant) = max(tenant) and min(state) = max(state),
           bool_and(origin is not null
                    or (agent_counted + v_count <= agent_max
                        and (tenant_counted + v_count > least(coalesce(tenant_max, p_max_queue), p_max_total / 2)) is not true)),
           bool_or(session is not null), bool_or(dependencies > 0), bool_or(concurrency_key is not null),
           bool_and(state = 'queued' and session is null and concurrency_key is null and batch is null and dependencies = 0
                    and priority > :PRIORITY_CRITICAL),
           max(queued)
      into v_forms, v_known, v_alike, v_fit, v_sessioned, v_dependent, v_keyed, v_plain, v_queued
      from (select *, case when unmet > 0 then 'waiting_dependency'
                           when run_at > p_now then 'delayed' else 'queued' end as state
              from (
      select k.*, o.*, coalesce(k.max_queued, p_max_agent) as agent_max,
             case when k.preemptible then :PREEMPTIONS_MAX else 0 end as preemptions_left,
             coalesce(json_array_length(k.depends_on), 0) as dependencies,
             case when json_array_length(k.depends_on) > 0 then (
               select count(*) from json_array_elements_text(k.depends_on) d(id)
                where :PARENT_STATE is distinct from 'done') else 0 end as unmet,
             (select l.aging_ms from lane l where l.name = k.lane) as aging_ms,
             :PARKED_BY as held_by,
             case when k.session is not null
                  then (select s.id from session s where s.tenant = k.tenant and s.key = k.session) end as session_id,
             b.tenant_max, coalesce(b.tenant_disabled, false) as tenant_disabled, q.queued,
             -- If all tenants together have fewer than one may have, so has this tenant.
             case when b.tenant_max is not null or b.tenant_disabled or q.queued + v_count > least(p_max_queue, p_max_total / 2) then (
               select sum(t.waiting - t.exempt) from tenant_line t where t.tenant = k.tenant) end as tenant_counted
        from rows from (json_to_recordset(p_forms) as (
        tenant text, agent text, lane text, kind text, priority integer, run_at bigint, deadline bigint, deadline_after_ms bigint,
        max_retries_if_lost integer, max_queued bigint, preemptible boolean, batch text, session text, session_max integer,
        origin text, schedule bigint, concurrency_key text, callback_url text, parent_task text, root_task text,
        depends_on json)) with ordinality as k(
          tenant, agent, lane, kind, priority, run_at, deadline, deadline_after_ms, max_retries_if_lost, max_queued, preemptible,
          batch, session, session_max, origin, schedule, concurrency_key, callback_url, parent_task, root_task, depends_on, n)
       cross join lateral (
         select max(l.id) filter (where l.lane = k.lane and l.kind = :QUEUE_KIND) as line,
                coalesce(bool_or(l.standing = 2 and l.lane = k.lane and l.kind = :QUEUE_KIND), false) as unserved,
                sum(l.waiting)::integer as waiting,
                sum(l.waiting - l.exempt) as agent_counted
           from line l where l.tenant = k.tenant and l.agent = k.agent) o
        left join lateral (
          select t.max_queued as tenant_max, t.disabled as tenant_disabled from tenant t where t.id = k.tenant offset 0) b on true
       cross join (select coalesce(sum(l.waiting - l.exempt), 0)::bigint as queued from lane l) q order by k.n) k) k;
    exit when v_known is not false;
    perform create_agent_queues(p_forms);
    perform create_sessions(p_forms);
  end loop;
  v_first := nextval('task_seq');
  v_last := setval('task_seq', v_first + v_count - 1);
  -- If all tasks fit, whatever their tenants and agents, no task has to be checked.
  if not v_fit or v_queued + v_count > p_max_total then
    select full_queues, queued, agent_positions into v_full_queues, v_full_queued, v_agent_positions
      from admit_tasks(v_forms, p_form_of, p_agent_positions, v_queued, p_max_queue, p_max_total);
  end if;
  if v_plain and v_full_queues is null then
    perform insert_ready_tasks(p_now, v_first, v_forms, p_form_of, p_agent_positions, p_ids, p_specs);
    return row(v_first, v_forms, null)::inserted_forms;
  end if;
  if v_sessioned then
    v_session_tasks := array(
      select row(n - 1, v_first + n - 1, :STATE, (f).batch, (f).session, (f).session_max, (f).origin,
                 v_full_queues[n])::session_task
        from :EACH u order by n);
    if v_count > 1 and ends_stale_message(v_session_tasks) then
      for v_n in 1 .. v_count loop
        v_each := v_each || insert_selected(p_now, p_forms, p_form_of, p_ids, p_specs, array[v_n], p_max_queue, p_max_total, p_max_agent);
      end loop;
      return row(v_first, null, v_each)::inserted_forms;
    end if;
    select positions, admitted into v_turns, v_admitted from assign_positions(v_session_tasks);
  end if;
  if v_keyed then v_held := take_keys(v_forms, p_form_of, v_full_queues, v_admitted, v_first, not v_sessioned); end if;
  insert into task (seq, id, tenant, agent, line, priority, rank, resting_state, parked, position, created_at, run_at,
                    deadline, deadline_after_ms, max_retries_if_lost, preemptions_left, completed_at, batch, session, place,
                    origin, schedule, concurrency_key, callback_url, parent_task, root_task, dependencies, unmet, spec, error, full_queue)
  select v_first + n - 1, id, (f).tenant, (f).agent, (f).line, (f).priority, (f).rank,
         :STATE, case when :REFUSED then null else coalesce(v_held[n], (f).parked) end, :POSITION, p_now, (f).run_at,
         :DEADLINE, (f).deadline_after_ms, (f).max_retries_if_lost, (f).preemptions_left,
         case when :REFUSED then p_now end, (f).batch, (f).session, v_turns[n], (f).origin, (f).schedule, (f).concurrency_key,
         (f).callback_url, (f).parent_task, (f).root_task,
         (f).dependencies, case when :REFUSED then 0 else (f).unmet end, spec, :ERROR, v_full_queues[n]
    from :EACH_WHOLE u;
  with readied as (
    insert into ready (line, rank, task_seq)
    select (f).line, (f).rank, v_first + n - 1 from :EACH u where :READY),
  -- Tasks of a form are counted together, except critical ones: each of those may need a slot that another task holds.
  alike as (
    select form, :REFUSED as refused, :READY as ready, :ASKS and v_held[n] is distinct from 'key' as active, count(*)::integer as tasks, min(n) as first
      from :EACH u group by form, refused, ready, active, case when (f).rank <= :PRIORITY_CRITICAL then n end)
  select array_agg(row((f).line, tasks, case when (f).origin is null then 0 else tasks end,
                       case when (f).state = 'queued' and not ready then tasks else 0 end,
                       case when ready then tasks else 0 end, 0, null,
                       case when ready then (f).rank end, case when ready then v_first + first - 1 end)::queue_delta)
           filter (where not refused),
         array_agg(row((f).batch, case when active then tasks else 0 end, tasks)::batch_delta)
           filter (where (f).batch is not null and not refused),
         array_agg((f).tenant), array_agg(case when refused then 'rejected' else (f).state end), array_agg(tasks)
    into v_deltas, v_batches, v_tenants, v_states, v_tasks
    from (select *, v_forms[form] as f from alike offset 0) a;
  if v_deltas is not null then perform apply_deltas(v_deltas); end if;
  if v_batches is not null then perform move_batches(v_batches); end if;
  if 'asking' = any (v_held) then
    perform defer_work('keys', array(
      select (v_first + n - 1)::text from unnest(v_held) with ordinality u(held, n) where held = 'asking'));
  end if;
  perform count_tasks(v_tenants, v_states, v_tasks);
  v_seqs := array(select generate_series(v_first, v_last));
  if v_alike and v_full_queues is null then
    v_types := array_fill('task.created'::text, array[v_count]);
    v_tenants := array_fill(v_forms[1].tenant, array[v_count]);
    v_data := array_fill('{"state":"' || v_forms[1].state || '"}', array[v_count]);
  else
    select array_agg(case when :REFUSED then 'task.rejected' else 'task.created' end order by n),
           array_agg((f).tenant order by n),
           array_agg(case when :REFUSED then '{"error":"' || :ERROR || '"}'
                          else '{"state":"' || (f).state || '"}' end order by n)
      into v_types, v_tenants, v_data from :EACH u;
  end if;
  perform append_events(take_event_numbers(v_count), p_now, v_types, v_tenants, v_seqs, v_data);
  if v_sessioned then perform add_turns(p_now, v_session_tasks, v_turns, v_admitted); end if;
  if v_dependent then perform add_dependencies(p_forms, p_form_of, v_first); end if;
  if v_dependent or v_full_queues is not null then
    v_each := array(
      select row(v_first + n - 1, id, :STATE, :POSITION, p_now, (f).run_at, :DEADLINE, v_full_queues[n], v_full_queued[n],
                 null, (f).unserved and v_full_queues[n] is null)::inserted_task
        from :EACH u order by n);
  end if;
  return row(v_first, v_forms, v_each)::inserted_forms;
end $$;

-- Inserts the only task of a call if it is ready, fits and has nothing to do with another: short statements take half the time of
-- those that insert many. first_seq null: it did nothing. forms: see insert_tasks. p_node and what follows: a claim of this node,
-- which is alive; null: none. token: of the attempt that has started, because a claim would have started just this task; null: none has.
create function insert_ready_task(
  p_now bigint, p_forms json, p_id text, p_spec text, p_max_queue bigint, p_max_total bigint, p_max_agent bigint,
  p_node text, p_lanes text[], p_limits integer[], p_each integer[], p_left text[],
  out first_seq bigint, out forms json, out token bigint)
language plpgsql as $$
#variable_conflict use_column
declare
  k record;
  v_queue record;
  v_limits record;
  v_rank bigint;
  v_deadline bigint;
  v_exempt integer;
  v_is_first boolean;
  v_ahead boolean;
  v_room integer;
  v_gained integer;
  v_disabled boolean;
  v_refreshed boolean;
  v_claim integer;
  v_starts boolean := false;
  v_event bigint;
begin
  select * into k from json_to_recordset(p_forms) as j(
    tenant text, agent text, lane text, kind text, priority integer, run_at bigint, deadline bigint, deadline_after_ms bigint,
    max_retries_if_lost integer, max_queued bigint, preemptible boolean, batch text, session text, origin text, schedule bigint,
    concurrency_key text, callback_url text, parent_task text, root_task text, depends_on json);
  if k.priority <= :PRIORITY_CRITICAL or k.run_at > p_now or num_nonnulls(k.session, k.batch, k.concurrency_key, k.depends_on) > 0 then
    return;
  end if;
  select o.*, n.ready, n.inflight, n.standing, n.pool, n.head_rank, n.head_seq, n.room, n.agent_max is not null or n.shared as limited,
         n.startable and n.ahead as was_urgent
    into v_queue
    from (select max(l.id) filter (where l.lane = k.lane and l.kind = :QUEUE_KIND) as line,
                 coalesce(bool_or(l.standing = 2 and l.lane = k.lane and l.kind = :QUEUE_KIND), false) as unserved,
                 sum(l.waiting)::integer as waiting, sum(l.waiting - l.exempt) as counted
            from line l where l.tenant = k.tenant and l.agent = k.agent) o
   cross join lateral (select * from line where id = o.line offset 0) n;
  if not found then return; end if;
  select l.per_agent, l.aging_ms, l.strategy, q.queued, coalesce(t.max_queued, p_max_queue) as tenant_max,
         case when t.max_queued is not null or t.disabled or q.queued >= least(p_max_queue, p_max_total / 2) then (
           select sum(o.waiting - o.exempt) from tenant_line o where o.tenant = k.tenant) end as counted
    into v_limits
    from lane l
   cross join (select sum(waiting - exempt) as queued from lane) q
    left join lateral (select max_queued, disabled from tenant where id = k.tenant offset 0) t on true
   where l.name = k.lane;
  if v_limits.queued >= p_max_total
     or (k.origin is null and (v_queue.counted >= coalesce(k.max_queued, p_max_agent)
                               or v_limits.counted >= least(v_limits.tenant_max, p_max_total / 2))) then
    return;
  end if;
  first_seq := nextval('task_seq');
  v_rank := :LONE_RANK;
  v_deadline := coalesce(k.deadline, greatest(p_now, k.run_at) + k.deadline_after_ms);
  v_exempt := (k.origin is not null)::integer;
  v_is_first := v_queue.head_seq is null or (v_rank, first_seq) < (v_queue.head_rank, v_queue.head_seq);
  v_ahead := case when v_is_first then v_rank else v_queue.head_rank end <= :PRIORITY_CRITICAL or v_limits.strategy = 'priority-fifo';
  -- A queue of an agent with its own limit, or with several queues in the lane, is refreshed below.
  v_room := case when v_queue.standing = 0 then greatest(least(v_queue.ready + 1, v_limits.per_agent - v_queue.inflight), 0) else 0 end;
  v_gained := v_room - v_queue.room;
  v_claim := array_position(p_lanes, k.lane);
  if p_limits[v_claim] > 0 and v_room > 0 and v_queue.ready = 0 and v_queue.pool = 0 and not v_queue.limited
     and v_limits.strategy = 'fair-fifo' and (v_deadline <= p_now) is not true then
    v_starts := can_start_alone(p_now, k.tenant, k.lane, p_lanes, p_each[v_claim], p_left[v_claim]::jsonb);
  end if;
  insert into task (seq, id, tenant, agent, line, priority, rank, resting_state, position, created_at, run_at, deadline,
                    deadline_after_ms, max_retries_if_lost, preemptions_left, origin, schedule, callback_url, parent_task, root_task, spec)
  values (first_seq, p_id, k.tenant, k.agent, v_queue.line, k.priority, v_rank, 'queued', v_queue.waiting + 1, p_now, k.run_at, v_deadline,
          case when k.deadline is null then k.deadline_after_ms end, k.max_retries_if_lost,
          case when k.preemptible then :PREEMPTIONS_MAX else 0 end, k.origin, k.schedule, k.callback_url, k.parent_task, k.root_task, p_spec);
  v_event := nextval('event_seq');
  forms := json_build_array(json_build_object('state', 'queued', 'waiting', v_queue.waiting, 'deadline', v_deadline,
                                              'unserved', v_queue.unserved));
  if v_starts then
    token := nextval('event_seq');
    insert into lease (task_seq, token, node, line, state, attempt, started_at, lane, tenant, priority)
    values (first_seq, token, p_node, v_queue.line, 'running', 1, p_now, k.lane, case when k.priority > 0 and k.preemptible then k.tenant end,
            case when k.priority > 0 and k.preemptible then k.priority end);
    update line n set inflight = n.inflight + 1, last_served = token where n.id = v_queue.line;
    update tenant_line t
       set inflight = t.inflight + 1, last_served = token, owed = greatest(t.owed - 1, 0), ahead_streak = 0
     where t.lane = k.lane and t.tenant = k.tenant;
    update lane l set inflight = l.inflight + 1 where l.name = k.lane;
    update tally y set tasks = y.tasks + 1 where y.tenant = k.tenant and y.state = 'queued';
    insert into event (last_seq, count, type, at, tenant, task_seqs, data)
    values (v_event, 1, 'task.created', p_now, k.tenant, array[first_seq], '{"state":"queued"}'),
           (token, 1, 'task.started', p_now, k.tenant, array[first_seq], '{"attempt":1}');
    return;
  end if;
  insert into ready (line, rank, task_seq) values (v_queue.line, v_rank, first_seq);
  update line n
     set waiting = n.waiting + 1, exempt = n.exempt + v_exempt, ready = n.ready + 1,
         head_rank = case when v_is_first then v_rank else n.head_rank end,
         head_seq = case when v_is_first then first_seq else n.head_seq end,
         room = v_room, startable = v_room > 0, ahead = v_ahead
   where n.id = v_queue.line;
  update tenant_line t
     set waiting = t.waiting + 1, exempt = t.exempt + v_exempt, supply = t.supply + v_gained,
         urgent_lines = t.urgent_lines + (v_room > 0 and v_ahead)::integer - v_queue.was_urgent::integer,
         startable = not t.disabled and t.supply + v_gained > 0 and (t.inflight >= t.lane_max) is not true
   where t.lane = k.lane and t.tenant = k.tenant
  returning t.disabled, t.max_inflight is not null or t.crowded into v_disabled, v_refreshed;
  update lane l set waiting = l.waiting + 1, exempt = l.exempt + case when v_disabled then 1 else v_exempt end where l.name = k.lane;
  update tally y set tasks = y.tasks + 1 where y.tenant = k.tenant and y.state = 'queued';
  insert into event (last_seq, count, type, at, tenant, task_seqs, data)
  values (v_event, 1, 'task.created', p_now, k.tenant, array[first_seq], '{"state":"queued"}');
  if v_refreshed then perform refresh_tenants(array[k.tenant]); end if;
  if v_queue.limited then
    perform refresh_startable(array(select s.id from line s where s.tenant = k.tenant and s.agent = k.agent));
  end if;
end $$;

-- Whether a claim in these lanes would start a new task of this tenant in lane p_lane and nothing else: nothing else can start, and
-- no limit holds it back. p_each, p_left: see claim_tasks.
create function can_start_alone(p_now bigint, p_tenant text, p_lane text, p_lanes text[], p_each integer, p_left jsonb) returns boolean
language plpgsql stable as $$
begin
  return exists (
           select 1 from lane l join tenant_line t on t.lane = l.name
            where l.name = p_lane and t.tenant = p_tenant and (l.inflight >= l.total) is not true and not t.disabled and not t.crowded
              and t.max_inflight is null and (t.inflight >= t.lane_max) is not true
              and not (l.second_tenant and coalesce((p_left ->> p_tenant)::integer, p_each, 1) <= 0))
     and not exists (select 1 from line where lane = any (p_lanes) and startable and pool = 0)
     and not exists (select 1 from line where lane = any (p_lanes) and startable and pool <> 0)
     and not exists (select 1 from key_hold where contested)
     and not exists (select 1 from release)
     and not exists (select 1 from task where expires_at <= p_now);
end $$;

-- Inserts tasks of which each is ready, fits and has nothing to do with another: most calls. They are not critical.
create function insert_ready_tasks(
  p_now bigint, p_first bigint, p_forms task_form[], p_form_of integer[], p_agent_positions integer[], p_ids text[], p_specs text[])
returns void language plpgsql as $$
#variable_conflict use_column
declare
  v_event bigint := take_event_numbers(cardinality(p_ids));
  v_alike boolean;
  v_limited bigint[];
  v_refreshed text[];
begin
  with form as materialized (select * from unnest(p_forms) with ordinality f),
  each as materialized (
    select p_first + u.n - 1 as seq, u.n, u.id, u.spec, u.agent_position, f.*
      from unnest(p_form_of, p_agent_positions, p_ids, p_specs) with ordinality u(form, agent_position, id, spec, n)
      join form f on f.ordinality = u.form),
  stored as (
    insert into task (seq, id, tenant, agent, line, priority, rank, resting_state, position, created_at, run_at, deadline,
                      deadline_after_ms, max_retries_if_lost, preemptions_left, origin, schedule, callback_url, parent_task, root_task,
                      dependencies, unmet, spec)
    select seq, id, tenant, agent, line, priority, rank, 'queued', waiting + agent_position, p_now, run_at, deadline,
           deadline_after_ms, max_retries_if_lost, preemptions_left, origin, schedule, callback_url, parent_task, root_task, 0, 0, spec
      from each),
  readied as (
    insert into ready (line, rank, task_seq) select line, rank, seq from each),
  added as (
    select line, count(*)::integer as tasks, count(origin)::integer as exempt, min(array[rank, seq]) as head from each group by line),
  adjusted as (
    select a.*, o.address, o.lane, o.tenant, o.room as old_room, o.startable and o.ahead as was_urgent,
           -- Queues of an agent with its own limit, or with several queues in the lane, are refreshed below.
           case when o.standing = 0 then greatest(least(o.ready + a.tasks, l.per_agent - o.inflight), 0) else 0 end as room,
           h.rank, h.seq, h.rank <= :PRIORITY_CRITICAL or l.strategy = 'priority-fifo' as ahead
      from added a
     cross join lateral (select *, ctid as address from line where id = a.line offset 0) o
     cross join lateral (select strategy, per_agent from lane where name = o.lane offset 0) l
     cross join lateral (values (o.head_seq is null or (a.head[1], a.head[2]) < (o.head_rank, o.head_seq))) f(is_first)
     cross join lateral (values (case when f.is_first then a.head[1] else o.head_rank end,
                                 case when f.is_first then a.head[2] else o.head_seq end)) h(rank, seq)),
  counted as (
    update line n
       set waiting = n.waiting + p.tasks, exempt = n.exempt + p.exempt, ready = n.ready + p.tasks, head_rank = p.rank,
           head_seq = p.seq, room = p.room, startable = p.room > 0, ahead = p.ahead
      from adjusted p
     where n.ctid = p.address
    returning case when n.agent_max is not null or n.shared then n.id end as limited),
  tenants as (
    update tenant_line t
       set waiting = t.waiting + d.tasks, exempt = t.exempt + d.exempt, supply = t.supply + d.supply,
           urgent_lines = t.urgent_lines + d.urgent_lines,
           startable = not t.disabled and t.supply + d.supply > 0 and (t.inflight >= t.lane_max) is not true
      from (select lane, tenant, sum(tasks)::integer as tasks, sum(exempt)::integer as exempt, sum(room - old_room) as supply,
                   sum((room > 0 and ahead)::integer - was_urgent::integer)::integer as urgent_lines
              from adjusted group by lane, tenant) d
     cross join lateral (select ctid as address from tenant_line where lane = d.lane and tenant = d.tenant offset 0) a
     where t.ctid = a.address
    returning t.lane, t.tenant, d.tasks, case when t.disabled then d.tasks else d.exempt end as exempt,
              case when t.max_inflight is not null or t.crowded then t.tenant end as refreshed),
  totals as (
    update lane l set waiting = l.waiting + d.tasks, exempt = l.exempt + d.exempt
      from (select lane, sum(tasks)::integer as tasks, sum(exempt)::integer as exempt from tenants group by lane) d
     where l.name = d.lane),
  tallied as (
    update tally y set tasks = y.tasks + d.tasks
      from (select tenant, sum(tasks) as tasks from tenants group by tenant) d
     cross join lateral (select ctid as address from tally where tenant = d.tenant and state = 'queued' offset 0) a
     where y.ctid = a.address),
  summed as (
    select min(tenant) = max(tenant) as alike, min(tenant) as tenant from form),
  appended as (
    insert into event (last_seq, count, type, at, tenant, task_seqs, data)
    select v_event + cardinality(p_ids) - 1, cardinality(p_ids), 'task.created', p_now, tenant,
           array(select generate_series(p_first, p_first + cardinality(p_ids) - 1)), '{"state":"queued"}'
      from summed where alike)
  select alike, (select array_agg(limited) filter (where limited is not null) from counted),
         (select array_agg(refreshed) filter (where refreshed is not null) from tenants)
    into v_alike, v_limited, v_refreshed from summed;
  if not v_alike then
    perform append_events(v_event, p_now, array_fill('task.created'::text, array[cardinality(p_ids)]), array_agg(p_forms[form].tenant order by n),
                          array_agg(p_first + n - 1 order by n), array_fill('{"state":"queued"}'::text, array[cardinality(p_ids)]))
       from unnest(p_form_of) with ordinality u(form, n);
  end if;
  if v_refreshed is not null then perform refresh_tenants(v_refreshed); end if;
  -- An agent with its own limit gets no more room in one lane by what waits in another, but its own has changed.
  if v_limited is not null then
    perform refresh_startable(array(
      select s.id from line n join line s on s.tenant = n.tenant and s.agent = n.agent where n.id = any (v_limited)));
  end if;
end $$;

-- Inserts the tasks of a call with these indexes, without regard to the others.
create function insert_selected(
  p_now bigint, p_forms json, p_form_of integer[], p_ids text[], p_specs text[], p_some integer[], p_max_queue bigint,
  p_max_total bigint, p_max_agent bigint)
returns inserted_task[] language plpgsql as $$
#variable_conflict use_column
declare
  v_forms json;
  v_form_of integer[];
  v_agent_positions integer[];
  v_ids text[];
  v_specs text[];
begin
  with form as (
    select form, n from rows from (json_array_elements(p_forms)) with ordinality f(form, n)
     where n = any (array(select p_form_of[s] from unnest(p_some) s))),
  numbered as (
    select n, row_number() over (order by n) as number, form ->> 'tenant' as tenant, form ->> 'agent' as agent from form),
  chosen as (
    select u.ordinal, f.number, row_number() over (partition by f.tenant, f.agent order by u.ordinal) as agent_position,
           p_ids[u.n] as id, p_specs[u.n] as spec
      from unnest(p_some) with ordinality u(n, ordinal) join numbered f on f.n = p_form_of[u.n])
  select (select json_agg(form order by n) from form), array_agg(number order by ordinal), array_agg(agent_position order by ordinal),
         array_agg(id order by ordinal), array_agg(spec order by ordinal)
    into v_forms, v_form_of, v_agent_positions, v_ids, v_specs from chosen;
  return array(
    select a from insert_results(
      p_now, insert_forms(p_now, v_forms, v_form_of, v_agent_positions, v_ids, v_specs, p_max_queue, p_max_total, p_max_agent),
      v_form_of, v_agent_positions, v_ids) a);
end $$;

-- Inserts tasks that are each given as JSON with all of their values, in order.
create function insert_json_tasks(p_now bigint, p_tasks json, p_max_queue bigint, p_max_total bigint, p_max_agent bigint)
returns setof inserted_task language plpgsql as $$
#variable_conflict use_column
declare
  v_form_of integer[];
  v_agent_positions integer[];
  v_ids text[];
  v_specs text[];
begin
  select array_agg(n), array_agg(agent_position), array_agg(id), array_agg(spec) into v_form_of, v_agent_positions, v_ids, v_specs
    from (select n, row_number() over (partition by tenant, agent order by n) as agent_position, id, spec
            from rows from (json_to_recordset(p_tasks) as (tenant text, agent text, id text, spec text)) with ordinality
                   as j(tenant, agent, id, spec, n)
           order by n) j;
  return query select * from insert_results(
    p_now, insert_forms(p_now, p_tasks, v_form_of, v_agent_positions, v_ids, v_specs, p_max_queue, p_max_total, p_max_agent),
    v_form_of, v_agent_positions, v_ids);
end $$;

create function insert_results(p_now bigint, p_taken inserted_forms, p_form_of integer[], p_agent_positions integer[], p_ids text[])
returns setof inserted_task language plpgsql as $$
begin
  if p_taken."each" is not null then
    return query select * from unnest(p_taken."each");
  else
    return query
      select p_taken.first_seq + u.n - 1, u.id, (u.f).state,
             case when (u.f).state = 'queued' then (u.f).waiting + u.agent_position else 0 end,
             p_now, (u.f).run_at, (u.f).deadline, null::text, null::bigint, null::text, (u.f).unserved
        from (select u.*, (p_taken.forms)[u.form] as f
                from unnest(p_form_of, p_agent_positions, p_ids) with ordinality u(form, agent_position, id, n) offset 0) u;
  end if;
end $$;

-- Admits or rejects each task as if it came alone: by its position among its agent's tasks, then among the tasks of its
-- tenant that fit there, then among all tasks that fit there. Messages and runs are neither counted nor rejected.
-- full_queues: the queue that was full, null: none. queued: waiting tasks of the agent, or of the tenant if another queue
-- was full. agent_positions: without the rejected tasks. p_queued: waiting tasks of all enabled tenants.
create function admit_tasks(
  p_forms task_form[], p_form_of integer[], p_agent_positions integer[], p_queued bigint, p_max_queue bigint, p_max_total bigint,
  out full_queues text[], out queued bigint[], out agent_positions integer[])
language plpgsql as $$
#variable_conflict use_column
declare
  -- Once a second enabled tenant exists, no tenant may fill more than half of the total.
  v_half bigint := case when exists (select 1 from tenant where not disabled offset 1) then p_max_total / 2 end;
begin
  -- Of a tenant that has more than its half, which retries can cause, only the half counts. No admitted task brings its
  -- tenant beyond its half, so the sum is valid for the whole call.
  if v_half is not null and p_queued + cardinality(p_form_of) > p_max_total then
    p_queued := p_queued - coalesce((
      select sum(o.counted - v_half)
        from (select sum(t.waiting - t.exempt) as counted from tenant_line t where not t.disabled group by t.tenant) o
       where o.counted > v_half), 0);
  end if;
  with own as (
    select u.tenant, coalesce(sum(t.waiting - t.exempt), 0) as tenant_counted
      from (select distinct f.tenant from unnest(p_forms) f) u
      left join lateral (select waiting, exempt from tenant_line where tenant = u.tenant offset 0) t on true group by u.tenant),
  positioned as (
    select n, agent_position, (f).tenant, (f).agent, (f).origin is null as counts, (f).agent_counted, (f).agent_max, o.tenant_counted,
           (f).tenant_max, coalesce((f).tenant_max, p_max_queue) as bound, (f).tenant_disabled,
           count(*) filter (where (f).origin is null) over (partition by (f).tenant, (f).agent order by n) as counted_position
      from (select u.*, p_forms[u.form] as f
              from unnest(p_form_of, p_agent_positions) with ordinality u(form, agent_position, n) offset 0) u
      join own o on o.tenant = (f).tenant),
  judged as (
    select *, count(*) filter (where agent_ok) over (partition by tenant order by n) as tenant_upto
      from (select *, counts and agent_counted + counted_position <= agent_max as agent_ok from positioned) p),
  bounded as (
    select *, count(*) filter (where tenant_ok and not tenant_disabled) over (order by n) as admitted_upto
      from (select *, agent_ok and tenant_counted + tenant_upto <= least(bound, v_half) as tenant_ok from judged) j),
  decided as (
    select *, case when not counts then null
                   when not tenant_disabled and p_queued + admitted_upto - tenant_ok::integer >= p_max_total then 'server'
                   when tenant_counted + tenant_upto - agent_ok::integer >= least(bound, v_half) then
                     case when tenant_counted < bound and bound > v_half then 'server' else 'global' end
                   when not agent_ok then 'agent' end as "full"
      from bounded),
  moved as (
    select *, agent_position - count("full") over (partition by tenant, agent order by n) as accepted_position,
           count(*) filter (where counts and "full" is null) over (partition by tenant order by n) as tenant_accepted
      from decided)
  select array_agg("full" order by n),
         -- A tenant must not learn how many tasks of other tenants wait.
         array_agg(case when "full" = 'agent' then greatest(agent_counted, agent_max)
                        when "full" is not null then tenant_counted + tenant_accepted end order by n),
         array_agg(accepted_position order by n)
    into full_queues, queued, agent_positions from moved;
  -- The check before was conservative: all tasks may fit.
  if array_remove(full_queues, null) = '{}' then full_queues := null; end if;
end $$;
