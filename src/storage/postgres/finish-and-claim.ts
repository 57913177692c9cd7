import type { FinishAndClaimParams, FinishedAndClaimed } from "../storage.ts";
import type { PostgresDatabase } from "./database.ts";
import { isNoted } from "./notes.ts";
import { PREEMPT } from "./preempt-tasks.ts";
import { signalReleased } from "./release-dependants.ts";
import { RELEASED_MAX } from "./settle-moves.ts";
import { SESSION_KEY, type TaskRow, toTaskRecords } from "./task-row.ts";
import { cleanText } from "./text.ts";

/** One transaction and one round trip for what a busy node does all the time: end attempts, start others. */
export async function finishAndClaim(
  db: PostgresDatabase,
  params: FinishAndClaimParams,
): Promise<FinishedAndClaimed> {
  const rows = await db.write<StepRow>({
    name: "finish_and_claim",
    text: "select * from finish_and_claim($1, $2, $3, $4, $5, $6)",
    values: [
      params.node,
      JSON.stringify(params.finishes.map(toFinishRow)),
      JSON.stringify(params.progress.map(toProgressRow)),
      params.claims.map(({ lane }) => lane),
      params.claims.map(({ limit }) => limit),
    ],
  });
  const stateOf = new Map(
    params.finishes.toReversed().map(({ token, settlement }) => [token, settlement.to]),
  );
  const finished = rows
    .filter(({ what }) => what === "finished")
    .map(({ number }) => ({ token: Number(number), state: stateOf.get(Number(number)) ?? "failed" }));
  const started = rows.filter(({ what }) => what === "started");
  const tasks = await toTaskRecords(
    db,
    started.map((row) => ({ ...row, ...JUST_STARTED, held_node: params.node })),
  );
  const expired = rows
    .filter(({ what }) => what === "expired")
    .map(({ tenant, agent, lane }) => ({ tenant, agent, lane }));
  if (rows.length + params.progress.length > 0) db.signal({ kind: "events" });
  if (rows.some(({ what }) => what === "settled")) signalReleased(db);
  // The slots that an end freed may be what another node's tasks wait for.
  if (finished.length > 0) db.signalOthers({ kind: "work" });
  if (finished.some(({ state }) => state === "delayed")) db.signal({ kind: "due" });
  return {
    finished,
    claimed: tasks.map((task, index) => ({ token: Number(started[index]?.number), task })),
    expired,
  };
}

/** What is the same for every task that just started. */
const JUST_STARTED = {
  resting_state: "queued",
  last_started_at: null,
  last_outcome: null,
  last_node: null,
  completed_at: null,
  result: null,
  error: null,
  held_state: "running",
} as const;

interface StepRow extends Omit<TaskRow, keyof typeof JUST_STARTED | "held_node"> {
  readonly what: "finished" | "started" | "expired" | "settled";
  /** The token. */
  readonly number: string;
}

function toFinishRow(
  { seq, token, settlement, usage, summary }: FinishAndClaimParams["finishes"][number],
  n: number,
): object {
  const finish = {
    n,
    seq,
    token,
    state: settlement.to,
    input_tokens: usage?.inputTokens,
    output_tokens: usage?.outputTokens,
    context_tokens: usage?.contextTokens,
    context_window: usage?.contextWindow,
  };
  switch (settlement.to) {
    case "done":
      return {
        ...finish,
        result: JSON.stringify(settlement.result) ?? "null",
        summary: summary === undefined ? undefined : cleanText(summary),
      };
    case "failed":
    case "queued":
      return { ...finish, error: cleanText(settlement.error) };
    case "delayed":
      return { ...finish, error: cleanText(settlement.error), run_at: settlement.runAt };
  }
}

function toProgressRow(
  { seq, token, progress }: FinishAndClaimParams["progress"][number],
  n: number,
): object {
  // As text: the database neither looks into it nor refuses the characters that its own JSON refuses.
  return { n, seq, token, progress: JSON.stringify(progress) ?? "null" };
}

/** What of a task is not the same for every one that just started. */
const STARTED_COLUMNS = `
  seq bigint, id text, tenant text, agent text, lane text, priority integer, "position" integer, created_at bigint,
  run_at bigint, deadline bigint, retry_count integer, batch text, session text, schedule bigint, callback_url text, executions integer,
  started_at bigint, spec text, input_tokens bigint, output_tokens bigint, context_window bigint,
  held_attempt integer, held_since bigint`;

export const FINISH_AND_CLAIM_FUNCTIONS = `
create type started_task as (${STARTED_COLUMNS});

-- finished: number is the token. expired: tenant, agent and lane. settled: something else may be able to start, or has ended.
-- started: number is the token, the rest the task.
create function finish_and_claim(
  p_now bigint, p_node text, p_finishes json, p_progress json, p_lanes text[], p_limits integer[])
returns table (what text, number bigint, ${STARTED_COLUMNS}) language plpgsql as $$
#variable_conflict use_column
declare
  v_now bigint;
  v_tokens bigint[];
  v_freed line_delta[];
  v_expired record;
  v_seqs bigint[];
  v_ends boolean := json_array_length(p_finishes) > 0;
begin
  v_now := enter(p_now);
  perform 1 from node where id = p_node and not dead;
  if not found then return; end if;
  if json_array_length(p_progress) > 0 then perform write_progress(v_now, p_node, p_progress); end if;
  if v_ends then
    select tokens, deltas into v_tokens, v_freed from finish_held_tasks(v_now, p_node, p_finishes);
    return query select 'finished', t.token, (null::started_task).* from unnest(v_tokens) t(token);
  end if;
  -- A busy node frees and fills the same lines: then both are written down together.
  if v_freed is not null and (cardinality(p_lanes) <> 1 or not can_wait(v_freed, p_lanes[1])) then
    perform apply_deltas(v_freed);
    v_freed := null;
  end if;
  if cardinality(p_lanes) > 0 then
    for v_expired in select * from expire_overdue(v_now, 1000) loop
      v_ends := true;
      what := 'expired';
      tenant := v_expired.tenant;
      agent := v_expired.agent;
      lane := v_expired.lane;
      return next;
    end loop;
  end if;
  if exists (select 1 from release) or ${isNoted("sessions")} or ${isNoted("batches")} then
    v_ends := true;
    perform settle_moves(v_now, ${RELEASED_MAX});
    -- Something may go ahead of fairness now.
    if v_freed is not null and not can_wait(v_freed, p_lanes[1]) then
      perform apply_deltas(v_freed);
      v_freed := null;
    end if;
    return query select 'settled', null::bigint, (null::started_task).*;
  end if;
  for i in 1 .. cardinality(p_lanes) loop
    -- A statement of its own: the next one would not see leases that are written while it runs.
    v_seqs := claim_tasks(v_now, p_node, p_lanes[i], p_limits[i], v_freed);
    return query
      select 'started', l.token, t.seq, t.id, t.tenant, t.agent, p_lanes[i], t.priority, t.position, t.created_at,
             t.run_at, t.deadline, t.retry_count, t.batch, ${SESSION_KEY}, t.schedule, t.callback_url, t.executions, t.started_at,
             t.spec, t.input_tokens, t.output_tokens, t.context_window, l.attempt, l.started_at
        from unnest(v_seqs) with ordinality c(seq, place)
        join task t on t.seq = c.seq
        join lease l on l.task_seq = c.seq
       order by c.place;
  end loop;
  ${PREEMPT}
  -- A claim that is lost is merely made again, and whoever reads of it waits until it cannot be; see until-durable.ts.
  if not v_ends then set local synchronous_commit = off; end if;
end $$;

-- Ends the attempts that this node still holds; the rest has been lost and changes nothing. What it frees in lines is
-- the caller's to write down.
create function finish_held_tasks(
  p_now bigint, p_node text, p_finishes json, out tokens bigint[], out deltas line_delta[]) language plpgsql as $$
#variable_conflict use_column
declare
  v_ended ended_attempt[];
begin
  with told as (
    -- Of several ends of one attempt, the first counts.
    select distinct on (token) *
      from json_to_recordset(p_finishes)
             as f(n bigint, seq bigint, token bigint, state text, result text, error text, run_at bigint,
                  input_tokens bigint, output_tokens bigint, context_tokens bigint, context_window bigint,
                  summary text)
     order by token, n),
  held as (
    delete from lease l using told f
     where l.task_seq = f.seq and l.token = f.token and l.node = p_node
    returning f.*, l.line, l.attempt, l.started_at)
  select array_agg(row(n, seq, p_node, line, attempt, started_at, state,
           case state when 'done' then 'done' when 'queued' then 'interrupted' else 'failed' end,
           state = 'delayed', result, error, run_at, input_tokens, output_tokens, context_tokens,
           context_window, summary)::ended_attempt),
         array_agg(token order by n)
    into v_ended, tokens from held;
  if v_ended is not null then deltas := end_attempts(p_now, v_ended); end if;
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
