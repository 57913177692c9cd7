/**
 * Functions that keep the counters of lines, lanes and tenants. Everything runs under the gate, one writer at a time:
 * that makes limits exact on any number of nodes and event numbers follow the order of commit.
 */
/**
 * How many more tasks line `n` may start, its lane's total aside. An expression rather than a function of the database:
 * it is evaluated for every candidate of every claim, and calling it would cost more than all the rest of choosing.
 */
export function roomOf(n: string, perAgent: string, freed = "0"): string {
  return `least(${n}.ready, ${perAgent} - ${n}.inflight + ${freed}, case when ${n}.agent_max is not null then
    ${n}.agent_max - (select sum(s.inflight) from line s where s.tenant = ${n}.tenant and s.agent = ${n}.agent) end)`;
}

/** Whether the head of line `n` goes ahead of fairness. */
const AHEAD = "n.head_rank is not null and (n.head_rank <= 0 or l.strategy = 'priority-fifo')";

export const COUNTER_FUNCTIONS = `
-- What a statement moved in one line: either into ready or out of it, never both. served: token of the last start.
-- added_*: the smallest entry put into ready. Of the waiting, exempt are those that admission does not count, and parked
-- those that their session or their batch holds back.
create type line_delta as (
  line bigint, waiting integer, exempt integer, parked integer, ready integer, inflight integer, served bigint,
  added_rank bigint, added_seq bigint);

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

-- Writes events numbered from p_first on. Those that follow each other and say the same of different tasks share a row.
create function tell(
  p_first bigint, p_now bigint, p_types text[], p_tenants text[], p_task_seqs bigint[], p_data text[])
returns void language plpgsql as $$
#variable_conflict use_column
begin
  insert into event (last_seq, count, type, at, tenant, task_seqs, data)
  select p_first + max(place) - 1, count(*), type, p_now, tenant, array_agg(task_seq order by place), data
    from (select *, place - row_number() over (partition by type, tenant, data order by place) as run
            from unnest(p_types, p_tenants, p_task_seqs, p_data) with ordinality
                   as e(type, tenant, task_seq, data, place)) e
   group by type, tenant, data, run;
end $$;

-- Writes down what moved: one update for each line and lane, after ready has been changed.
create function apply_deltas(p_deltas line_delta[]) returns void language plpgsql as $$
#variable_conflict use_column
declare
  v_limited bigint[];
  v_freed bigint[];
  v_critical boolean;
begin
  with moved as (
    select line, sum(waiting)::integer as waiting, sum(exempt)::integer as exempt, sum(parked)::integer as parked,
           sum(ready)::integer as ready, sum(inflight)::integer as inflight,
           max(served) as served, min(array[added_rank, added_seq]) filter (where added_seq is not null) as added
      from unnest(p_deltas) group by line),
  placed as (
    select m.*, o.lane, l.per_agent, l.strategy,
           case when m.ready < 0 then next.rank when h.added_first then m.added[1] else o.head_rank end as rank,
           case when m.ready < 0 then next.task_seq when h.added_first then m.added[2] else o.head_seq end as seq
      from moved m
      join line o on o.id = m.line
      join lane l on l.name = o.lane
     cross join lateral (values (
       m.ready > 0 and (o.head_seq is null or (m.added[1], m.added[2]) < (o.head_rank, o.head_seq)))) h(added_first)
      -- What left: the new head is searched from the old one on, since before it lie only dead entries of the index.
      left join lateral (
        select r.rank, r.task_seq from ready r
         where m.ready < 0 and r.line = m.line and (r.rank, r.task_seq) >= (o.head_rank, o.head_seq)
         order by r.rank, r.task_seq limit 1) next on true),
  counted as (
    update line n
       set waiting = n.waiting + p.waiting,
           exempt = n.exempt + p.exempt,
           parked = n.parked + p.parked,
           ready = n.ready + p.ready,
           inflight = n.inflight + p.inflight,
           last_served = greatest(n.last_served, p.served),
           head_rank = p.rank,
           head_seq = p.seq,
           startable = n.ready + p.ready > 0 and n.inflight + p.inflight < coalesce(p.per_agent, 2147483647),
           ahead = p.rank is not null and (p.rank <= 0 or p.strategy = 'priority-fifo')
      from placed p
     where n.id = p.line
    returning n.id, n.agent_max is not null as limited, p.inflight < 0 as freed, p.added[1] <= 0 as critical),
  totals as (
    update lane l
       set waiting = l.waiting + d.waiting, exempt = l.exempt + d.exempt, inflight = l.inflight + d.inflight
      from (select lane, sum(waiting)::integer as waiting, sum(exempt)::integer as exempt,
                   sum(inflight)::integer as inflight
              from placed group by lane) d
     where l.name = d.lane and (d.waiting <> 0 or d.exempt <> 0 or d.inflight <> 0))
  select array_agg(id) filter (where limited), array_agg(id) filter (where limited and freed), bool_or(critical)
    into v_limited, v_freed, v_critical from counted;
  -- An agent with a limit of its own can be filled or freed in one lane and so change in all others.
  if v_limited is not null then
    perform refresh_startable(array(
      select s.id from line n join line s on s.tenant = n.tenant and s.agent = n.agent where n.id = any (v_limited)));
  end if;
  -- What it freed in one lane may be what a critical task in another waits for.
  if v_freed is not null then
    perform add_note('lanes', array(
      select distinct s.lane
        from line n join line s on s.tenant = n.tenant and s.agent = n.agent where n.id = any (v_freed)));
  end if;
  if v_critical then
    perform add_note('arrivals', array(select added_seq::text from unnest(p_deltas) where added_rank <= 0));
  end if;
end $$;

-- Which of these lines can start something, and which go ahead, by the limits as they are now.
create function refresh_startable(p_lines bigint[]) returns void language plpgsql as $$
begin
  update line n set startable = f.startable, ahead = f.ahead
    from (select n.id, coalesce(${roomOf("n", "l.per_agent")}, 0) > 0 as startable, ${AHEAD} as ahead
            from line n join lane l on l.name = n.lane where n.id = any (p_lines)) f
   where n.id = f.id and (n.startable, n.ahead) is distinct from (f.startable, f.ahead);
end $$;

-- Adds to, or takes from, how many tasks of tenants rest in states.
create function count_tasks(p_tenants text[], p_states text[], p_tasks integer[]) returns void language plpgsql as $$
begin
  update tally y set tasks = y.tasks + d.tasks
    from (select tenant, state, sum(tasks) as tasks
            from unnest(p_tenants, p_states, p_tasks) as u(tenant, state, tasks) group by tenant, state) d
   where y.tenant = d.tenant and y.state = d.state and d.tasks <> 0;
end $$;

-- The same for tasks that moved from one state to another.
create function count_moves(p_tenants text[], p_from text[], p_to text[]) returns void language plpgsql as $$
declare
  v_many integer[] := array[cardinality(p_tenants)];
begin
  perform count_tasks(p_tenants || p_tenants, p_from || p_to, array_fill(-1, v_many) || array_fill(1, v_many));
end $$;
`;
