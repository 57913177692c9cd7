import { preemptionError } from "../preemption-error.ts";
import { tasksAhead } from "./claim-tasks.ts";
import { roomOf } from "./counters.ts";
import { isNoted } from "./notes.ts";
import { TOKENS_MAX } from "./notifications.ts";

/** The last step of an operation: nothing is looked at unless a critical task became ready in it. */
export const PREEMPT = `if ${isNoted("arrivals")} then perform preempt(v_now); end if;`;

/** Takes the lease of the least urgent of some tasks, of those the one that started last. */
function takeLease(of: string): string {
  return `
    delete from lease where task_seq = (
      select l.task_seq from lease l
       where ${of} and l.priority is not null and l.node = any (v_nodes) order by l.priority desc, l.token desc limit 1)
    returning * into v_lease`;
}

/** What it reads grows with what is in flight, free slots and agents' limits, not with what waits. */
export const PREEMPT_FUNCTIONS = `
-- For each critical task that became ready and finds no free slot, makes one that runs give way, lane after lane.
create function preempt(p_now bigint) returns void language plpgsql as $$
#variable_conflict use_column
declare
  v_arrivals bigint[] := take_note('arrivals')::bigint[];
  v_lane text;
  v_tokens bigint[] := '{}';
begin
  -- What was started meanwhile is not ready any more; and where no lease may be taken, nothing needs to be looked at.
  for v_lane in
    select distinct n.lane
      from unnest(v_arrivals) a(seq)
      join task t on t.seq = a.seq
      join ready r on r.line = t.line and r.rank = t.rank and r.task_seq = t.seq
      join line n on n.id = t.line
     where (select l.token from lease l where l.lane = n.lane and l.tenant = n.tenant and l.priority is not null limit 1)
           is not null
     order by n.lane
  loop
    v_tokens := v_tokens || preempt_in(p_now, v_lane, v_arrivals);
  end loop;
  if cardinality(v_tokens) = 0 then return; end if;
  -- Rare enough for a notification inside the transaction, and any node may run one of them.
  perform pg_notify('rota', json_build_object('from', '', 'signals', json_build_array(
    json_build_object('kind', 'events'),
    json_build_object('kind', 'fenced', 'tokens', v_tokens[1:${TOKENS_MAX}], 'reason', 'preempted'),
    json_build_object('kind', 'work')))::text);
end $$;

-- Answers the tokens of the attempts that were taken from their tasks.
create function preempt_in(p_now bigint, p_lane text, p_arrivals bigint[]) returns bigint[] language plpgsql as $$
#variable_conflict use_column
declare
  v_lane lane;
  v_nodes text[];
  v_free bigint;
  v_last_seated bigint[];
  v_arrival record;
  v_lease lease;
  v_ended ended_attempt[] := '{}';
  v_tokens bigint[] := '{}';
  v_bare_tenants text[] := '{}';
  v_bare_lines bigint[] := '{}';
begin
  select * into v_lane from lane where name = p_lane;
  -- Nodes that would fill a slot that becomes free. One that has taken its slots back, or more than it has left, would not.
  select array_agg(node), greatest(least(sum(free), v_lane.total - v_lane.inflight), 0) into v_nodes, v_free
    from (select s.node, s.slots - coalesce(h.held, 0) as free
            from node_slot s join node d on d.id = s.node and not d.dead
            left join (select node, count(*) as held from lease where lane = p_lane group by node) h on h.node = s.node
           where s.lane = p_lane) n
   where free >= 0;
  if v_nodes is null then return '{}'; end if;
  if v_free > 0 and v_free < v_lane.waiting then
    v_last_seated := last_seated(p_lane, v_lane.per_agent, v_free::integer);
  end if;
  -- Everybody's need is settled before the first one gives way.
  for v_arrival in
    with arrived as (
      select t.seq, t.id, t.tenant, t.line, t.rank
        from (select distinct u.seq from unnest(p_arrivals) u(seq)) a
        join task t on t.seq = a.seq
        join ready r on r.line = t.line and r.rank = t.rank and r.task_seq = t.seq
        join line n on n.id = t.line and n.lane = p_lane),
    -- What agents could still run of their lines: everything, or up to the last one.
    bounds as materialized (
      select n.id as line, n.room >= n.ready as all_usable, last.rank, last.task_seq
        from (select n.id, n.ready, n.head_rank, n.head_seq, ${roomOf("n", "v_lane.per_agent")} as room
                from line n where n.id in (select line from arrived)) n
        left join lateral (
          select r.rank, r.task_seq from ready r
           where n.room > 0 and n.room < n.ready
             and r.line = n.id and (r.rank, r.task_seq) >= (n.head_rank, n.head_seq)
           order by r.rank, r.task_seq offset greatest(n.room - 1, 0) limit 1) last on true),
    judged as (
      select a.*, b.all_usable or coalesce((a.rank, a.seq) <= (b.rank, b.task_seq), false) as usable
        from arrived a join bounds b on b.line = a.line)
    select * from judged
     where not usable or v_free = 0 or array[rank, seq] > v_last_seated
     order by rank, seq
  loop
    -- Whoever is beyond the limits of its agent needs a slot of that agent; else any of its tenant will do.
    if v_arrival.usable then
      continue when v_arrival.tenant = any (v_bare_tenants);
      ${takeLease("l.lane = p_lane and l.tenant = v_arrival.tenant")};
      if not found then v_bare_tenants := v_bare_tenants || v_arrival.tenant; continue; end if;
    else
      continue when v_arrival.line = any (v_bare_lines);
      ${takeLease("l.line = v_arrival.line")};
      if not found then v_bare_lines := v_bare_lines || v_arrival.line; continue; end if;
    end if;
    v_tokens := v_tokens || v_lease.token;
    v_ended := v_ended || row(cardinality(v_tokens), v_lease.task_seq, v_lease.node, v_lease.line, v_lease.attempt,
                              v_lease.started_at, 'queued', 'preempted', false, null,
                              '${preemptionError("' || v_arrival.id || '")}', null, null, null, null)::ended_attempt;
  end loop;
  if cardinality(v_tokens) = 0 then return v_tokens; end if;
  perform apply_deltas(end_attempts(p_now, v_ended));
  -- The slot is for a critical task: its start is one more that may go ahead of fairness.
  update lane set ahead_streak = ahead_streak - cardinality(v_tokens) where name = p_lane and strategy = 'fair-fifo';
  return v_tokens;
end $$;

-- The last of the critical tasks that so many free slots are for; null: there are more slots.
create function last_seated(p_lane text, p_per_agent integer, p_count integer) returns bigint[]
language plpgsql stable as $$
begin
  return (select array[r.rank, r.task_seq] from ${tasksAhead("true")}
           order by r.rank, r.task_seq offset p_count - 1 limit 1);
end $$;
`;
