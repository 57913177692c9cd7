import { roomOf } from "./counters.ts";

/**
 * The first tasks `r` of the lines `c` that hold the smallest (rank, seq) and can start something: among them are the
 * first p_count of the lane p_lane.
 */
export function tasksAhead(criticalOnly: string): string {
  return `(select n.id, n.head_rank, n.head_seq, ${roomOf("n", "p_per_agent")} as room
              from line n where n.lane = p_lane and n.startable and n.ahead
             order by n.head_rank, n.head_seq limit p_count) c
     cross join lateral (
       select rank, task_seq from ready
        where line = c.id and (rank, task_seq) >= (c.head_rank, c.head_seq) and (not ${criticalOnly} or rank <= 0)
        order by rank, task_seq limit least(c.room, p_count)) r`;
}

/**
 * Hands out up to `limit` tasks of a lane, in the order in which one claim after the other would have handed them out.
 * What it reads grows with `limit`, not with what waits. sqlite/claim-tasks.ts says the same in TypeScript.
 */
export const CLAIM_FUNCTIONS = `
-- p_freed: what ends freed in lines and has not been written down; see can_wait.
create function claim_tasks(p_now bigint, p_node text, p_lane text, p_limit integer, p_freed line_delta[])
returns bigint[] language plpgsql as $$
#variable_conflict use_column
declare
  v_lane lane;
  v_fair boolean;
  v_left integer;
  v_ahead_max integer;
  v_lines bigint[];
  v_started bigint[] := '{}';
begin
  select * into v_lane from lane where name = p_lane;
  if not found then raise exception 'lane "%" is not configured', p_lane; end if;
  v_fair := v_lane.strategy = 'fair-fifo';
  v_left := least(p_limit, v_lane.total - v_lane.inflight + coalesce(cardinality(p_freed), 0));
  while v_left > 0 loop
    v_ahead_max := case when v_fair then least(v_left, 7 - v_lane.ahead_streak) else v_left end;
    v_lines := case when v_ahead_max > 0 then choose_ahead(p_lane, v_lane.per_agent, v_ahead_max, v_fair) end;
    if cardinality(v_lines) > 0 then
      if v_fair then v_lane.ahead_streak := v_lane.ahead_streak + cardinality(v_lines); end if;
    else
      exit when not v_fair;
      -- Where nothing goes ahead, all that is left is fair; after a full streak, one start is.
      v_lines := choose_fairly(p_lane, v_lane.per_agent, case when v_ahead_max > 0 then v_left else 1 end, p_freed);
      exit when coalesce(cardinality(v_lines), 0) = 0;
      v_lane.ahead_streak := 0;
    end if;
    v_started := v_started || start_attempts(p_now, p_node, v_lines, p_freed);
    p_freed := null;
    v_left := v_left - cardinality(v_lines);
  end loop;
  if p_freed is not null then perform apply_deltas(p_freed); end if;
  update lane set ahead_streak = v_lane.ahead_streak
   where name = p_lane and ahead_streak <> v_lane.ahead_streak;
  return v_started;
end $$;

-- Whether what was freed can be written down together with what is started in this lane. It can where all of it lies in
-- this lane, nothing returned to its line, and only fairness decides.
create function can_wait(p_freed line_delta[], p_lane text) returns boolean language plpgsql stable as $$
#variable_conflict use_column
begin
  return not exists (
           select 1 from unnest(p_freed) f join line n on n.id = f.line
            where f.waiting <> 0 or n.lane <> p_lane or n.ahead or n.agent_max is not null)
     and not exists (select 1 from line where lane = p_lane and startable and ahead);
end $$;

-- The lines that hold the smallest (rank, seq), one entry for each task.
create function choose_ahead(p_lane text, p_per_agent integer, p_count integer, p_critical_only boolean) returns bigint[]
language plpgsql stable as $$
begin
  return array(
    select c.id from ${tasksAhead("p_critical_only")} order by r.rank, r.task_seq limit p_count);
end $$;

-- Fewest in flight first, ties to the one served longest ago, one entry for each start: a line's nth start here comes
-- in the order of (in flight + n, n, last served).
create function choose_fairly(p_lane text, p_per_agent integer, p_count integer, p_freed line_delta[]) returns bigint[]
language plpgsql stable as $$
#variable_conflict use_column
declare
  v_ids bigint[];
  v_inflight integer[];
  v_served bigint[];
  v_room integer[];
  v_supply bigint;
  v_span integer;
  v_lines bigint[];
begin
  if p_freed is null then
    select array_agg(id), array_agg(inflight), array_agg(last_served), array_agg(room), least(sum(room), p_count)
      into v_ids, v_inflight, v_served, v_room, v_supply
      from (select n.id, n.inflight, n.last_served, ${roomOf("n", "p_per_agent")} as room
              from line n where n.lane = p_lane and n.startable
             order by n.inflight, n.last_served, n.id limit p_count) c;
  else
    -- The index does not know yet what was freed: those lines are looked at besides, with what they will have.
    with freed as (select line, count(*)::integer as slots from unnest(p_freed) group by line),
    candidate as (
      select line as id from freed
      union
      (select n.id from line n where n.lane = p_lane and n.startable
        order by n.inflight, n.last_served, n.id limit p_count + cardinality(p_freed))),
    adjusted as (
      select n.id, n.inflight - coalesce(f.slots, 0) as inflight, n.last_served,
             ${roomOf("n", "p_per_agent", "coalesce(f.slots, 0)")} as room
        from candidate c join line n on n.id = c.id left join freed f on f.line = c.id)
    select array_agg(id), array_agg(inflight), array_agg(last_served), array_agg(room), least(sum(room), p_count)
      into v_ids, v_inflight, v_served, v_room, v_supply
      from (select * from adjusted where room > 0 order by inflight, last_served, id limit p_count) c;
  end if;
  if v_ids is null then return null; end if;
  -- All starts up to a level are listed, rather than p_count for each line; the level rises until they are enough.
  v_span := (p_count + cardinality(v_ids) - 1) / cardinality(v_ids);
  loop
    v_lines := array(
      select c.id
        from unnest(v_ids, v_inflight, v_served, v_room) as c(id, inflight, served, room)
       cross join lateral generate_series(1, least(c.room, v_inflight[1] + v_span - c.inflight)) as s(n)
       order by c.inflight + s.n, s.n, c.served, c.id limit p_count);
    exit when cardinality(v_lines) >= v_supply;
    v_span := v_span * 4;
  end loop;
  return v_lines;
end $$;

-- Starts the first tasks of these lines, one for each entry, in the order of the entries; writes p_freed down with it.
create function start_attempts(p_now bigint, p_node text, p_lines bigint[], p_freed line_delta[]) returns bigint[]
language plpgsql as $$
#variable_conflict use_column
declare
  v_first bigint := take_event_numbers(cardinality(p_lines));
  v_seqs bigint[];
  v_tenants text[];
  v_data text[];
  v_deltas line_delta[];
begin
  with pick as (
    select line, place, row_number() over (partition by line order by place) as n
      from unnest(p_lines) with ordinality u(line, place)),
  need as (select line, count(*) as tasks from pick group by line),
  head as (
    select r.line, r.rank, r.task_seq, o.lane, row_number() over (partition by r.line order by r.rank, r.task_seq) as n
      from need
      join line o on o.id = need.line
     cross join lateral (
       select line, rank, task_seq from ready
        where line = need.line and (rank, task_seq) >= (o.head_rank, o.head_seq)
        order by rank, task_seq limit need.tasks) r),
  chosen as materialized (
    select head.line, head.rank, head.task_seq, pick.place, v_first + pick.place - 1 as token,
           t.executions + 1 as attempt, t.tenant, head.lane, t.priority, t.session,
           (t.origin is not null)::integer as exempt,
           t.priority > 0 and t.preemptions_left > 0 as gives_way
      from pick join head on head.line = pick.line and head.n = pick.n
      join task t on t.seq = head.task_seq and t.resting_state = 'queued'),
  gone as (
    delete from ready r using chosen c
     where r.line = c.line and r.rank = c.rank and r.task_seq = c.task_seq),
  held as (
    insert into lease (task_seq, token, node, line, state, attempt, started_at, session, lane, tenant, priority)
    select task_seq, token, p_node, line, 'running', attempt, p_now, session, lane, case when gives_way then tenant end,
           case when gives_way then priority end from chosen)
  select array_agg(task_seq order by place), array_agg(tenant order by place),
         array_agg('{"attempt":' || attempt || '}' order by place),
         array_agg(row(line, -1, -exempt, 0, -1, 1, token, null, null)::line_delta)
    into v_seqs, v_tenants, v_data, v_deltas from chosen;
  if coalesce(cardinality(v_seqs), 0) <> cardinality(p_lines) then
    raise exception 'counters of lines % disagree with what is ready', p_lines;
  end if;
  perform tell(v_first, p_now, array_fill('task.started'::text, array[cardinality(v_seqs)]), v_tenants, v_seqs, v_data);
  perform apply_deltas(v_deltas || p_freed);
  return v_seqs;
end $$;
`;
