import { jsonText } from "../../../model/text/json-text.ts";
import { jsonWeight } from "../../../model/text/json-weight.ts";
import {
  type ClaimedTask,
  type FinishAndClaimParams,
  type FinishedAndClaimed,
  type FinishedAttempt,
  KEYS_LOOKED_AT,
  type TaskPlace,
} from "../../storage.ts";
import { isAlone } from "../connection/abilities.ts";
import type { PostgresDatabase } from "../connection/database.ts";
import { cleanText } from "../connection/text.ts";
import { agentLimitOf } from "../counters/counters.ts";
import { slotValues } from "../tenants/tenant-shares.ts";
import { isNoted } from "./deferred-work.ts";
import { ENDING_VARIABLES, endAttempts } from "./end-attempts.ts";
import { PREEMPT } from "./preempt-tasks.ts";
import { signalReleased } from "./release-dependants.ts";
import { RELEASED_MAX } from "./settle-moves.ts";
import { SESSION_KEY, type TaskRow, toTaskRecords } from "./task-row.ts";

/** What a busy node does all the time, in one transaction and one round trip: ends attempts and starts others. */
export async function finishAndClaim(
  db: PostgresDatabase,
  params: FinishAndClaimParams,
): Promise<FinishedAndClaimed> {
  const finishes = firstOfEach(params.finishes);
  const slots = params.claims.map(({ perTenant }) => slotValues(perTenant));
  const exchange = {
    name: "finish_and_claim",
    text: "select * from finish_and_claim($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)",
    values: [
      params.node,
      finishes.map(({ seq }) => seq),
      finishes.map(({ token }) => token),
      finishes.map(resultOf),
      toJson(finishes.map(toFinishRow)),
      toJson(params.progress.map(toProgressRow)),
      params.claims.map(({ lane }) => lane),
      params.claims.map(({ limit }) => limit),
      slots.map(({ each }) => each),
      slots.map(({ left }) => left),
      params.claimsMax ?? null,
      db.othersAlive,
    ],
  };
  const { rows, durable } =
    finishes.length > 0
      ? await db.writeEarly<StepRow>(exchange)
      : { rows: await db.write<StepRow>(exchange), durable: undefined };
  const lost = new Set(rows.filter(({ what }) => what === "lost").map(({ number }) => Number(number)));
  const finished = finishes
    .filter(({ token }) => !lost.has(token))
    .map(({ token, settlement }) => ({ token, state: settlement.to }));
  const claimed = await toClaimed(db, rows, params.node);
  if (rows.length + finished.length + params.progress.length > 0) db.signal({ kind: "events" });
  if (rows.some(({ what }) => what === "settled")) signalReleased(db);
  if (rows.some(({ what }) => what === "freed")) db.signalOthers({ kind: "work" });
  if (finished.some(({ state }) => state === "delayed")) db.signal({ kind: "due" });
  return { finished, claimed, expired: toExpired(rows), ...(durable === undefined ? {} : { durable }) };
}

/** Claims a task that runs alone, for a node that runs nothing else. */
export async function claimAlone(
  db: PostgresDatabase,
  params: { node: string; lanes: readonly string[] },
): Promise<FinishedAndClaimed> {
  const rows = await db.write<StepRow>({
    name: "claim_alone",
    text: "select * from claim_alone($1, $2, $3)",
    values: [params.node, params.lanes],
  });
  const claimed = await toClaimed(db, rows, params.node);
  if (rows.length > 0) db.signal({ kind: "events" });
  if (rows.some(({ what }) => what === "settled")) signalReleased(db);
  return { finished: [], claimed, expired: toExpired(rows) };
}

export async function isAloneWaiting(
  db: PostgresDatabase,
  { node, lanes }: { node: string; lanes: readonly string[] },
): Promise<boolean> {
  const rows = await db.read({
    name: "is_alone_waiting",
    text: `select 1 from line n join tenant_line t on t.tenant = n.tenant and t.lane = n.lane
            where ${aloneFor("$1")} and n.lane = any ($2) and not t.disabled limit 1`,
    values: [node, lanes],
  });
  return rows.length > 0;
}

/** Whether agent queue `n` has ready tasks that run alone and that this node, if it is alive, can execute. */
function aloneFor(node: string): string {
  return `${isAlone("n")} and n.ready > 0 and n.pool in (
    select p.id from pool p join node o on o.profile = any (p.profiles) where o.id = ${node} and not o.dead)`;
}

async function toClaimed(
  db: PostgresDatabase,
  rows: readonly StepRow[],
  node: string,
): Promise<ClaimedTask[]> {
  const started = rows.filter(({ what }) => what === "started");
  for (const { number } of started) db.sawEvent(Number(number));
  const tasks = await toTaskRecords(
    db,
    started.map((row) => ({ ...row, ...JUST_STARTED, held_node: node })),
  );
  return tasks.map((task, index) => ({
    token: Number(started[index]?.number),
    task,
    bytes: jsonWeight(started[index]?.spec ?? ""),
  }));
}

function toExpired(rows: readonly StepRow[]): TaskPlace[] {
  return rows
    .filter(({ what }) => what === "expired")
    .map(({ tenant, agent, lane }) => ({ tenant, agent, lane }));
}

/** The columns that are the same for every task that has just started. */
const JUST_STARTED = {
  resting_state: "queued",
  last_started_at: null,
  last_outcome: null,
  last_node: null,
  completed_at: null,
  result: null,
  error: null,
  held_state: "running",
  changed_at: null,
} as const;

interface StepRow extends Omit<TaskRow, keyof typeof JUST_STARTED | "held_node"> {
  readonly what: "lost" | "started" | "expired" | "settled" | "freed";
  /** The token. */
  readonly number: string;
}

/** If an attempt is ended several times, the first end counts. */
function firstOfEach(finishes: readonly FinishedAttempt[]): readonly FinishedAttempt[] {
  const tokens = new Set(finishes.map(({ token }) => token));
  if (tokens.size === finishes.length) return finishes;
  return finishes.filter(({ token }) => tokens.delete(token));
}

function resultOf({ settlement }: FinishedAttempt): string | null {
  return settlement.to === "done" ? (jsonText(settlement.result) ?? "null") : null;
}

/** What there is to write about an end besides `done` and the result; null: nothing. */
function toFinishRow({ settlement, usage, summary }: FinishedAttempt, n: number): object | null {
  if (settlement.to === "done" && usage === undefined && summary === undefined) return null;
  return {
    n: n + 1,
    state: settlement.to,
    error: settlement.to === "done" ? undefined : cleanText(settlement.error),
    run_at: settlement.to === "delayed" ? settlement.runAt : undefined,
    input_tokens: usage?.inputTokens,
    output_tokens: usage?.outputTokens,
    context_tokens: usage?.contextTokens,
    context_window: usage?.contextWindow,
    summary: summary === undefined ? undefined : cleanText(summary),
  };
}

/** Null if there are no rows, so that the database has nothing to parse. */
function toJson(rows: readonly (object | null)[]): string | null {
  const given = rows.filter((row) => row !== null);
  return given.length === 0 ? null : JSON.stringify(given);
}

function toProgressRow(
  { seq, token, progress }: FinishAndClaimParams["progress"][number],
  n: number,
): object {
  // As text: the database does not parse it, because its JSON parser refuses some characters.
  return { n, seq, token, progress: JSON.stringify(progress) ?? "null" };
}

/** The columns that differ between tasks that have just started. */
const STARTED_COLUMNS = `
  seq bigint, id text, tenant text, agent text, lane text, priority integer, "position" integer, created_at bigint,
  run_at bigint, deadline bigint, retry_count integer, batch text, session text, schedule bigint, concurrency_key text,
  callback_url text, executions integer,
  started_at bigint, spec text, input_tokens bigint, output_tokens bigint, context_window bigint,
  held_attempt integer, held_since bigint`;

/** These columns of a task `t` that has just started. */
function startedTask(lane: string, now: string): string {
  return `t.seq, t.id, t.tenant, t.agent, ${lane}, t.priority, t.position, t.created_at,
    t.run_at, t.deadline, t.retry_count, t.batch, ${SESSION_KEY}, t.schedule, t.concurrency_key, t.callback_url,
    t.executions, t.started_at, t.spec, t.input_tokens, t.output_tokens, t.context_window, t.executions + 1, ${now}`;
}

export const FINISH_AND_CLAIM_FUNCTIONS = `
create type started_task as (${STARTED_COLUMNS});

-- p_max: how many are started in all lanes; null: any number.
-- p_seqs, p_tokens, p_results: attempts that have ended; p_more: what else there is to say of some of them.
-- p_each, p_left: for each lane, what tenants may take of its slots; see tenant-shares.ts.
-- lost: number is the token of one that was not held. expired: tenant, agent and lane. settled: something else may be able
-- to start, or has ended. freed: other nodes may have waited for what has ended; only if p_others, which says that there
-- are any. started: number is the token, the rest the task.
create function finish_and_claim(
  p_now bigint, p_node text, p_seqs bigint[], p_tokens bigint[], p_results text[], p_more json, p_progress json,
  p_lanes text[], p_limits integer[], p_each integer[], p_left text[], p_max integer, p_others boolean)
returns table (what text, number bigint, ${STARTED_COLUMNS}) language plpgsql as $$
#variable_conflict use_column
declare
  v_now bigint;
  v_may integer := p_max;
  v_lost bigint[];
  v_moved line_delta[];
  v_freed bigint[];
  v_expired record;
  v_seqs bigint[];
  v_first bigint;
  v_ended boolean;
  v_contested boolean;
  v_left integer;
  v_passed boolean;
  v_started boolean := false;
begin
  v_now := enter(p_now);
  select exists (select 1 from key_hold where contested) into v_contested from node where id = p_node and not dead;
  if not found then
    return query select 'lost', t.token, (null::started_task).* from unnest(p_tokens) t(token);
    return;
  end if;
  if p_progress is not null then perform write_progress(v_now, p_node, p_progress); end if;
  if cardinality(p_seqs) > 0 then
    select lost, moved, freed into v_lost, v_moved, v_freed
      from finish_held_tasks(v_now, p_node, p_seqs, p_tokens, p_results, p_more);
    if v_lost is not null then
      return query select 'lost', t.token, (null::started_task).* from unnest(v_lost) t(token);
    end if;
  end if;
  v_ended := v_moved is not null or v_freed is not null;
  if p_others and v_ended and (v_contested or is_limited(v_freed || array(select line from unnest(v_moved)))) then
    return query select 'freed', null::bigint, (null::started_task).*;
  end if;
  -- A busy node frees and fills the same lines: then both are written down together.
  if v_moved is not null
     or (v_freed is not null and (v_contested or cardinality(p_lanes) <> 1 or not can_wait(v_freed, p_lanes[1]))) then
    perform apply_deltas(v_moved || freed_slots(v_freed));
    v_freed := null;
  end if;
  if cardinality(p_lanes) > 0 then
    for v_expired in select * from expire_overdue(v_now, 1000) loop
      what := 'expired';
      tenant := v_expired.tenant;
      agent := v_expired.agent;
      lane := v_expired.lane;
      return next;
    end loop;
  end if;
  if exists (select 1 from release) or ${isNoted("sessions")} or ${isNoted("batches")} or ${isNoted("keys")} then
    if settle_moves(v_now, ${RELEASED_MAX}) then
      return query select 'settled', null::bigint, (null::started_task).*;
    end if;
    v_contested := exists (select 1 from key_hold where contested);
    -- Something may go ahead of fairness now.
    if v_freed is not null and (v_contested or not can_wait(v_freed, p_lanes[1])) then
      perform apply_deltas(freed_slots(v_freed));
      v_freed := null;
    end if;
  end if;
  for i in 1 .. cardinality(p_lanes) loop
    -- Where everything is busy no slot is ever left: keys are passed on as often as something ends, too.
    v_left := least(p_limits[i], v_may);
    if v_contested and v_ended and v_left > 0 then
      perform pass_keys_on(v_now, p_lanes[i], ${KEYS_LOOKED_AT.afterEnd}, p_each[i], p_left[i]::jsonb);
    end if;
    v_passed := false;
    loop
      -- A statement of its own: the next one would not see leases that are written while it runs.
      select seqs, first_token into v_seqs, v_first 
        from claim_tasks(v_now, p_node, p_lanes[i], v_left, v_freed, p_each[i], p_left[i]);
      return query
        select 'started', v_first + c.place - 1, ${startedTask("p_lanes[i]", "v_now")}
          from unnest(v_seqs) with ordinality c(seq, place) join task t on t.seq = c.seq
         order by c.place;
      v_may := v_may - coalesce(cardinality(v_seqs), 0);
      exit when not v_contested;
      v_freed := null;
      v_started := v_started or v_seqs is not null;
      exit when v_passed and v_seqs is null;
      v_left := v_left - coalesce(cardinality(v_seqs), 0);
      if p_each[i] is not null then p_left[i] := slots_after(p_each[i], p_left[i]::jsonb, v_seqs); end if;
      v_passed := v_left > 0 and pass_keys_on(v_now, p_lanes[i], ${KEYS_LOOKED_AT.keys}, p_each[i], p_left[i]::jsonb);
      exit when not v_passed;
    end loop;
  end loop;
  -- What was started may be what a task with a key cannot start for now: another may in a lane that was claimed from before.
  if v_started then return query select 'settled', null::bigint, (null::started_task).*; end if;
  ${PREEMPT}
  -- Nothing waits for the disk under the write lock. The caller flushes after the commit; readers wait (until-durable.ts).
  set local synchronous_commit = off;
end $$;

-- For a node that runs nothing else: one task that runs alone, of the line with such tasks that was served longest ago.
create function claim_alone(p_now bigint, p_node text, p_lanes text[])
returns table (what text, number bigint, ${STARTED_COLUMNS}) language plpgsql as $$
#variable_conflict use_column
declare
  v_now bigint := enter(p_now);
  v_expired record;
  v_line bigint;
  v_lane text;
  v_token bigint;
  v_seqs bigint[];
begin
  perform 1 from node where id = p_node and not dead;
  if not found then return; end if;
  for v_expired in select * from expire_overdue(v_now, 1000) loop
    what := 'expired';
    tenant := v_expired.tenant;
    agent := v_expired.agent;
    lane := v_expired.lane;
    return next;
  end loop;
  if settle_moves(v_now, ${RELEASED_MAX}) then
    return query select 'settled', null::bigint, (null::started_task).*;
  end if;
  select n.id, n.lane into v_line, v_lane
    from line n
    join lane l on l.name = n.lane
    join tenant_line t on t.tenant = n.tenant and t.lane = n.lane
   where ${aloneFor("p_node")} and n.lane = any (p_lanes) and not t.disabled
     and (l.total is null or l.inflight < l.total)
     and (t.max_inflight is null or t.max_inflight > (select sum(s.inflight) from tenant_line s where s.tenant = t.tenant))
     and coalesce(${agentLimitOf("n", "l.per_agent")}, 1) > 0
   order by n.last_served, n.id limit 1;
  if found then
    v_token := take_event_numbers(1);
    v_seqs := start_attempts(v_now, p_node, array[v_line], array[v_token], null, true);
    return query select 'started', v_token, ${startedTask("v_lane", "v_now")} from task t where t.seq = any (v_seqs);
  end if;
  ${PREEMPT}
end $$;

-- Whether a limit holds back what waits in one of these lines, or beside them in their lanes.
create function is_limited(p_lines bigint[]) returns boolean language plpgsql stable as $$
#variable_conflict use_column
begin
  return exists (
    select 1 from line n
      join lane l on l.name = n.lane
      join tenant_line t on t.tenant = n.tenant and t.lane = n.lane
     where n.id = any (p_lines)
       and (l.inflight >= l.total or (n.ready > 0 and n.room = 0) or n.agent_max is not null or n.shared
            or t.max_inflight is not null or (l.second_tenant and t.inflight >= t.lane_max)));
end $$;

-- Ends the attempts that this node still holds; the rest has been lost and changes nothing. What it moves and frees in
-- lines is the caller's to write down.
create function finish_held_tasks(
  p_now bigint, p_node text, p_seqs bigint[], p_tokens bigint[], p_results text[], p_more json,
  out lost bigint[], out moved line_delta[], out freed bigint[]) language plpgsql as $$
#variable_conflict use_column
declare${ENDING_VARIABLES}
begin${endAttempts(`
  ended as (
    delete from lease l
     using unnest(p_seqs, p_tokens, p_results) with ordinality f(seq, token, result, n)
      left join json_to_recordset(p_more)
             as m(n bigint, state text, error text, run_at bigint, input_tokens bigint, output_tokens bigint,
                  context_tokens bigint, context_window bigint, summary text) on m.n = f.n
     where l.task_seq = f.seq and l.token = f.token and l.node = p_node
    returning f.n, l.task_seq, l.token, l.node, l.line, l.attempt, l.started_at, coalesce(m.state, 'done') as state,
              case coalesce(m.state, 'done') when 'done' then 'done' when 'queued' then 'interrupted' else 'failed' end as outcome,
              coalesce(m.state = 'delayed', false) as counted, f.result, m.error, m.run_at, m.input_tokens, m.output_tokens,
              m.context_tokens, m.context_window, m.summary)`)}
  moved := v_deltas;
  freed := v_freed;
  if cardinality(p_tokens) > coalesce(cardinality(v_tokens), 0) then
    lost := array(select token from unnest(p_tokens) u(token) where v_tokens is null or token <> all (v_tokens));
  end if;
end $$;

-- Writes what running attempts report, as long as they hold their lease.
create function write_progress(p_now bigint, p_node text, p_progress json) returns void language plpgsql as $$
#variable_conflict use_column
declare
  v_seqs bigint[];
  v_tenants text[];
  v_data text[];
begin
  select array_agg(p.seq order by p.n), array_agg(n.tenant order by p.n),
         array_agg('{"attempt":' || l.attempt || ',"progress":' || p.progress || '}' order by p.n)
    into v_seqs, v_tenants, v_data
    from json_to_recordset(p_progress) as p(n bigint, seq bigint, token bigint, progress text)
    join lease l on l.task_seq = p.seq and l.token = p.token and l.node = p_node
    join line n on n.id = l.line;
  if v_seqs is null then return; end if;
  perform tell(take_event_numbers(cardinality(v_seqs)), p_now,
               array_fill('task.progress'::text, array[cardinality(v_seqs)]), v_tenants, v_seqs, v_data);
end $$;
`;
