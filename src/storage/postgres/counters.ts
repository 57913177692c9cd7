/**
 * Functions that keep the counters of lines, lanes and tenants. Everything runs under the gate, one writer at a time:
 * that makes limits exact on any number of nodes and event numbers follow the order of commit.
 */
export const COUNTER_FUNCTIONS = `
-- What a statement moved in one line. served: token of the last start. added_*: the smallest entry put into ready.
create type line_delta as (
  line bigint, waiting integer, ready integer, inflight integer, served bigint, added_rank bigint, added_seq bigint);

-- The gate. A statement of its own: what follows must see what the one before committed.
create function enter(p_now bigint) returns bigint language plpgsql as $$
begin
  perform pg_advisory_xact_lock(7682);
  -- The clock is read inside the gate, so that times follow the order of commit. Tests hand one in.
  return coalesce(p_now, floor(extract(epoch from clock_timestamp()) * 1000)::bigint);
end $$;

-- The first of p_count event numbers that are now this transaction's own.
create function take_event_numbers(p_count bigint) returns bigint language plpgsql as $$
declare
  v_first bigint;
begin
  v_first := nextval('event_seq');
  if p_count > 1 then perform setval('event_seq', v_first + p_count - 1); end if;
  return v_first;
end $$;

-- How many more tasks a line may start, its lane's total aside. (A bare line is a geometric type.)
create function room(p_line rota.line, p_per_agent integer) returns integer language sql stable as $$
  select least(
    p_line.ready,
    p_per_agent - p_line.inflight,
    case when p_line.agent_max is not null then p_line.agent_max - (
      select sum(s.inflight)::integer from line s where s.tenant = p_line.tenant and s.agent = p_line.agent) end)
$$;

-- Writes down what moved: one update for each line and lane, after ready has been changed.
create function apply_deltas(p_deltas line_delta[]) returns void language plpgsql as $$
#variable_conflict use_column
declare
  v_limited bigint[];
begin
  with moved as (
    select line, sum(waiting)::integer as waiting, sum(ready)::integer as ready, sum(inflight)::integer as inflight,
           max(served) as served, (array_agg(added_rank order by added_rank, added_seq))[1] as added_rank,
           (array_agg(added_seq order by added_rank, added_seq))[1] as added_seq
      from unnest(p_deltas) group by line),
  -- The new head is searched from where it can be at the earliest: before that lie only dead entries of the index.
  bounded as (
    select m.*, n.lane,
           case when m.added_rank is null or (n.head_rank, n.head_seq) < (m.added_rank, m.added_seq)
                then n.head_rank else m.added_rank end as from_rank,
           case when m.added_rank is null or (n.head_rank, n.head_seq) < (m.added_rank, m.added_seq)
                then n.head_seq else m.added_seq end as from_seq
      from moved m join line n on n.id = m.line),
  counted as (
    update line n
       set waiting = n.waiting + b.waiting,
           ready = n.ready + b.ready,
           inflight = n.inflight + b.inflight,
           last_served = greatest(n.last_served, b.served),
           head_rank = h.rank,
           head_seq = h.task_seq,
           startable = n.ready + b.ready > 0 and n.inflight + b.inflight < coalesce(l.per_agent, 2147483647),
           ahead = coalesce(h.rank <= 0 or l.strategy = 'priority-fifo', false) and h.rank is not null
      from bounded b
      join lane l on l.name = b.lane
      left join lateral (
        select r.rank, r.task_seq from ready r
         where r.line = b.line and (r.rank, r.task_seq) >= (b.from_rank, b.from_seq)
         order by r.rank, r.task_seq limit 1) h on true
     where n.id = b.line
    returning n.id, n.agent_max),
  totals as (
    update lane l set waiting = l.waiting + d.waiting, inflight = l.inflight + d.inflight
      from (select lane, sum(waiting)::integer as waiting, sum(inflight)::integer as inflight
              from bounded group by lane) d
     where l.name = d.lane and (d.waiting <> 0 or d.inflight <> 0))
  select array_agg(id) filter (where agent_max is not null) into v_limited from counted;
  -- An agent with a limit of its own can be filled or freed in one lane and so change in all others.
  if v_limited is not null then
    perform refresh_startable(array(
      select s.id from line n join line s on s.tenant = n.tenant and s.agent = n.agent where n.id = any (v_limited)));
  end if;
end $$;

-- Which of these lines can start something, and which go ahead, by the limits as they are now.
create function refresh_startable(p_lines bigint[]) returns void language sql as $$
  update line n
     set startable = coalesce(room(n, l.per_agent), 0) > 0,
         ahead = n.head_rank is not null and (n.head_rank <= 0 or l.strategy = 'priority-fifo')
    from lane l
   where n.id = any (p_lines) and l.name = n.lane
     and (n.startable, n.ahead) is distinct from
         (coalesce(room(n, l.per_agent), 0) > 0,
          n.head_rank is not null and (n.head_rank <= 0 or l.strategy = 'priority-fifo'))
$$;

-- Moves tasks of tenants in and out of states.
create function count_tasks(p_tenants text[], p_states text[], p_tasks bigint[]) returns void language sql as $$
  update tally y set tasks = y.tasks + d.tasks
    from (select tenant, state, sum(tasks) as tasks
            from unnest(p_tenants, p_states, p_tasks) as u(tenant, state, tasks) group by tenant, state) d
   where y.tenant = d.tenant and y.state = d.state and d.tasks <> 0
$$;
`;
