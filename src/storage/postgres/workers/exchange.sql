create type started_task as (:STARTED_COLUMNS);

-- A poll of a live worker. held, alone: how many attempts its worker holds, and whether one of them runs alone.
create type worker_poll as (
  n integer, worker text, tenant text, claim text, agents text[], only_agents text[], except_agents text[], wants integer, slots integer, lease_ms integer,
  held integer, alone boolean, hashes text[], nonces text[], assigned integer);

-- Ends attempts of workers, and assigns tasks to polls. p_seqs, p_tokens, p_workers, p_results: attempts that have ended;
-- p_recorded: whether the worker reported the end; p_more: other values of some of them. Rows: "lost": number is the token of an attempt that
-- was no longer held. "expired": tenant, agent and lane. "settled": another task may be able to start, or has ended. "freed": a
-- limit held tasks back. "gone": the worker of this poll is unknown or lost. "repeated": number is the token of an attempt that
-- the poll got before, seq its task. "assigned": number is the token, the rest is the task. "held": limits hold ready tasks back.
-- Agent queues of which any poll that can take a task of one can take those of all, and of which only fairness decides. room: of
-- their tenant and lane together; null: they are not alike.
create type alike_queues as (
  ids bigint[], inflight integer[], served bigint[], rooms bigint[], base integer, owner bigint, takers integer[], room bigint);

-- The slot of a worker for a start, in the order of the starts.
create type assigned_slot as (poll integer, worker text, claim text, lease_ms integer, hash text, nonce text);

create function worker_exchange(
  p_now bigint, p_seqs bigint[], p_tokens bigint[], p_workers text[], p_recorded boolean[], p_results text[], p_more json,
  p_progress json, p_polls json)
returns table (what text, number bigint, poll integer, nonce text, :STARTED_COLUMNS) language plpgsql as $$
#variable_conflict use_column
declare
  v_now bigint;
  v_lost bigint[];
  v_moved queue_delta[];
  v_freed bigint[];
  v_expired record;
  v_polls worker_poll[];
  v_open worker_poll[];
  v_queues bigint[];
  v_next record;
  v_poll worker_poll;
  v_token bigint;
  v_started bigint[];
  v_alike alike_queues;
  v_count integer;
  v_slots assigned_slot[];
begin
  if cardinality(p_seqs) = 0 and p_progress is null and not polls_may_get(p_now, p_polls) then return; end if;
  v_now := take_write_lock(p_now);
  if p_progress is not null then perform write_worker_progress(v_now, p_progress); end if;
  if cardinality(p_seqs) > 0 then
    select lost, moved, freed into v_lost, v_moved, v_freed
      from finish_worker_tasks(v_now, p_seqs, p_tokens, p_workers, p_recorded, p_results, p_more);
    if v_lost is not null then
      return query select 'lost', t.token, null::integer, null::text, (null::started_task).* from unnest(v_lost) t(token);
    end if;
    if is_limited(v_freed || array(select line from unnest(v_moved))) or exists (select 1 from key_hold where contested) then
      return query select 'freed', null::bigint, null::integer, null::text, (null::started_task).*;
    end if;
    if v_moved is not null or v_freed is not null then perform apply_deltas(v_moved || freed_slots(v_freed)); end if;
  end if;
  if p_polls is not null then
    for v_expired in select * from expire_overdue(v_now, :EXPIRED_PER_CLAIM_MAX) loop
      what := 'expired';
      tenant := v_expired.tenant;
      agent := v_expired.agent;
      lane := v_expired.lane;
      return next;
    end loop;
  end if;
  if settle_moves(v_now, :RELEASED_MAX) then
    return query select 'settled', null::bigint, null::integer, null::text, (null::started_task).*;
  end if;
  if p_polls is not null then
    return query
      select 'gone', null::bigint, p.n, null::text, (null::started_task).*
        from json_to_recordset(p_polls) as p(n integer, worker text)
       where not exists (select 1 from worker w where w.id = p.worker and not w.lost offset 0) order by p.n;
    return query
      select 'repeated', a.token, p.n, a.nonce, (r.s).*
        from json_to_recordset(p_polls) as p(n integer, worker text, claim text)
       -- Looked up, here and below: a plan with joins, made while there are few rows, would read all of them when there are many.
       cross join lateral (select 1 from worker where id = p.worker and not lost offset 0) w
       cross join lateral (
         select task_seq, token, nonce, assigned_at from worker_attempt where worker = p.worker and claim = p.claim offset 0) a
       cross join lateral (select 1 from lease where task_seq = a.task_seq and token = a.token offset 0) l
       cross join lateral (select json_populate_record(null::started_task, json_build_object('seq', a.task_seq, 'created_at', a.assigned_at)) as s) r
       order by p.n, a.token;
    v_open := array(
      select row(p.n, p.worker, w.tenant, p.claim, w.agents, p.agents, p."except", least(p.max, json_array_length(p.tokens)), w.slots, w.lease_ms,
                 coalesce(h.held, 0), coalesce(h.alone, false), s.hashes, s.nonces, 0)::worker_poll
        from json_to_recordset(p_polls) as p(n integer, worker text, claim text, max integer, agents text[], "except" text[], tokens json)
       cross join lateral (
         select tenant, agents, slots, lease_ms from worker where id = p.worker and not lost and not draining offset 0) w
       left join (
         select l.node, count(*)::integer as held, bool_or(:IS_ALONE) as alone
           from lease l cross join lateral (select kind from line where id = l.line offset 0) n
          where l.node in (select worker from json_to_recordset(p_polls) as p(worker text)) group by l.node) h on h.node = p.worker
       cross join lateral (
         select array_agg(t.hash order by t.i) as hashes, array_agg(t.nonce order by t.i) as nonces
           from rows from (json_to_recordset(p.tokens) as (hash text, nonce text)) with ordinality t(hash, nonce, i)) s
       where not exists (
         select 1 from worker_attempt a
          cross join lateral (select 1 from lease where task_seq = a.task_seq and token = a.token offset 0) l
          where a.worker = p.worker and a.claim = p.claim offset 0)
       order by p.n);
    v_queues := array(
      select distinct n.id
        from (select distinct p.tenant, a.agent from unnest(v_open) p cross join lateral unnest(p.agents) a(agent)) p
       cross join lateral (
         select * from line where tenant = p.tenant and agent = p.agent
         union all select * from line where tenant = p.tenant and p.agent = ':ALL_AGENTS' offset 0) n
       where n.ready > 0 and :IS_FOR_WORKERS);
    loop
      -- Usually one agent queue after the other need not be looked at.
      select o.* into v_alike from (:ALIKE_QUEUES) o;
      if v_alike.room > 0 then
        v_slots := array(:FREE_SLOTS);
        v_count := cardinality(v_slots);
        v_token := take_event_numbers(v_count);
        v_started := start_attempts(
          v_now, array(select worker from unnest(v_slots)), v_token,
          allot(v_alike.ids, v_alike.inflight, v_alike.served, v_alike.rooms, v_count, v_alike.base, v_count),
          array(select generate_series(v_token, v_token + v_count - 1)), null, 'assigned', true);
        update tenant_line set ahead_streak = 0 where id = v_alike.owner and ahead_streak <> 0;
        insert into worker_attempt (hash, nonce, worker, claim, tenant, task_id, task_seq, token, number, assigned_at, times_out_at,
                                    deadline, unnamed_until)
        select s.hash, s.nonce, s.worker, s.claim, t.tenant, t.id, t.seq, v_token + s.i - 1, t.executions + 1, v_now,
               v_now + (readable_json(t.spec) ->> 'timeoutMs')::bigint, t.deadline, v_now + s.lease_ms
          from unnest(v_slots) with ordinality s(poll, worker, claim, lease_ms, hash, nonce, i)
         cross join lateral (select * from task where seq = v_started[s.i] offset 0) t;
        return query
          select 'assigned', v_token + s.i - 1, s.poll, s.nonce, :STARTED_FOR_WORKER
            from unnest(v_slots) with ordinality s(poll, worker, claim, lease_ms, hash, nonce, i)
           cross join lateral (select * from task where seq = v_started[s.i] offset 0) t
           order by s.i;
        exit;
      end if;
      select o.* into v_next from (:NEXT_QUEUE) o;
      exit when not found;
      select p.* into v_poll from unnest(v_open) p
        cross join lateral (select * from line where id = v_next.id offset 0) n
       where :CAN_TAKE order by p.held, p.n limit 1;
      v_token := take_event_numbers(1);
      v_started := start_attempts(v_now, array[v_poll.worker], v_token, array[v_next.id], array[v_token], null, 'assigned', true);
      update tenant_line set ahead_streak = v_next.streak where id = v_next.owner and ahead_streak <> v_next.streak;
      insert into worker_attempt (hash, nonce, worker, claim, tenant, task_id, task_seq, token, number, assigned_at, times_out_at,
                                  deadline, unnamed_until)
      select v_poll.hashes[v_poll.assigned + 1], v_poll.nonces[v_poll.assigned + 1], v_poll.worker, v_poll.claim, t.tenant, t.id, t.seq,
             v_token, t.executions + 1, v_now, v_now + (readable_json(t.spec) ->> 'timeoutMs')::bigint, t.deadline, v_now + v_poll.lease_ms
        from task t where t.seq = any (v_started);
      return query
        select 'assigned', v_token, v_poll.n, v_poll.nonces[v_poll.assigned + 1], :STARTED_FOR_WORKER
          from task t where t.seq = any (v_started);
      v_open := array(
        select row(p.n, p.worker, p.tenant, p.claim, p.agents, p.only_agents, p.except_agents, p.wants, p.slots, p.lease_ms,
                   p.held + (p.worker = v_poll.worker)::integer, p.alone or (p.worker = v_poll.worker and v_next.alone), p.hashes, p.nonces,
                   p.assigned + (p.n = v_poll.n)::integer)::worker_poll
          from unnest(v_open) p order by p.n);
    end loop;
    if exists (
      select 1 from unnest(v_queues) u(id)
       cross join lateral (select * from line where id = u.id offset 0) n
       cross join lateral (select * from lane where name = n.lane offset 0) l
       cross join lateral (select * from tenant_line where lane = n.lane and tenant = n.tenant offset 0) t
       where n.ready > 0 and not (:IS_STARTABLE)) then
      return query select 'held', null::bigint, null::integer, null::text, (null::started_task).*;
    end if;
  end if;
  :PREEMPT
  set local synchronous_commit = off;
end $$;

-- Whether a poll has attempts from an earlier call, a task is ready that it may get, or one is overdue. Reads only.
create function polls_may_get(p_now bigint, p_polls json) returns boolean language plpgsql stable as $$
#variable_conflict use_column
declare
  v_now bigint := coalesce(p_now, floor(extract(epoch from clock_timestamp()) * 1000)::bigint);
begin
  if p_polls is null then return false; end if;
  return exists (select 1 from task t where t.expires_at <= v_now) or exists (
    select 1 from json_to_recordset(p_polls) as p(n integer, worker text, claim text)
      left join lateral (select id, tenant, agents from worker where id = p.worker and not lost offset 0) w on true
     where w.id is null
        or exists (select 1 from worker_attempt a where a.worker = p.worker and a.claim = p.claim offset 0)
        or exists (
          select 1 from line n
           where n.tenant = w.tenant and n.ready > 0 and n.standing <> 0
             and (':ALL_AGENTS' = any (w.agents) or n.agent = any (w.agents)) offset 0));
end $$;

-- Ends attempts that their workers still hold; attempts that were lost change nothing. The caller records what this moves and
-- frees in agent queues.
create function finish_worker_tasks(
  p_now bigint, p_seqs bigint[], p_tokens bigint[], p_workers text[], p_recorded boolean[], p_results text[], p_more json,
  out lost bigint[], out moved queue_delta[], out freed bigint[]) language plpgsql as $$
#variable_conflict use_column
declare
  v_begun begun_attempt[];
begin
  if p_more is not null then v_begun := begin_ending(p_workers, p_seqs, p_tokens, p_more, null, null); end if;
  select f.lost, f.moved, f.freed into lost, moved, freed
    from finish_held_tasks(p_now, p_workers, p_seqs, p_tokens, p_results, p_more, null, null, v_begun, null, null) f;
  if lost @> p_tokens then return; end if;
  update worker_attempt a set ended_at = p_now, recorded = f.recorded
    from unnest(p_tokens, p_recorded) f(token, recorded)
   cross join lateral (select ctid as address from worker_attempt where token = f.token offset 0) o
   where a.ctid = o.address and (lost is null or f.token <> all (lost));
  insert into worker_minute as m (worker, minute, done, failed)
  select f.worker, p_now / 60000, count(*) filter (where coalesce(e.state, 'done') = 'done'),
         count(*) filter (where e.state in ('failed', 'delayed'))
    from unnest(p_tokens, p_workers) f(token, worker)
    left join json_to_recordset(p_more) as e(token bigint, state text) on e.token = f.token
   where (lost is null or f.token <> all (lost)) and e.state is distinct from 'queued' group by f.worker order by f.worker
  on conflict (worker, minute) do update set done = m.done + excluded.done, failed = m.failed + excluded.failed;
end $$;

create function write_worker_progress(p_now bigint, p_progress json) returns void language plpgsql as $$
#variable_conflict use_column
declare
  v_worker text;
begin
  for v_worker in select distinct p.worker from json_to_recordset(p_progress) as p(worker text) order by 1 loop
    perform write_progress(p_now, v_worker, (
      select json_agg(p) from json_array_elements(p_progress) p where p ->> 'worker' = v_worker));
  end loop;
end $$;
