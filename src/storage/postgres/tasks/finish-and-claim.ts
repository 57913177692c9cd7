import type { HeldState } from "../../../model/task-state.ts";
import { jsonText } from "../../../model/text/json-text.ts";
import { jsonWeight } from "../../../model/text/json-weight.ts";
import {
  type BegunAttempt,
  type ClaimedTask,
  EXPIRED_PER_CLAIM_MAX,
  type FinishAndClaimParams,
  type FinishedAndClaimed,
  type FinishedAttempt,
  KEYS_LOOKED_AT,
  type TaskLabels,
} from "../../storage.ts";
import { isAlone } from "../connection/abilities.ts";
import type { PostgresDatabase } from "../connection/database.ts";
import { readSql } from "../connection/sql-file.ts";
import { cleanText } from "../connection/text.ts";
import { agentLimitOf } from "../counters/counters.ts";
import { slotValues } from "../tenants/tenant-shares.ts";
import { isDeferred } from "./deferred-work.ts";
import { ENDING_VARIABLES, endAttempts } from "./end-attempt.ts";
import { PREEMPT } from "./preempt-tasks.ts";
import { signalReleased } from "./release.ts";
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
    text: "select * from finish_and_claim($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)",
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
      ...begunValues(params.begun ?? []),
      anyOf(params.claims.map(({ state = null }) => state)),
      anyOf(params.claims.map(({ ahead = null }) => ahead)),
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
  const written = rows.length + finished.length + params.progress.length + (params.begun?.length ?? 0);
  if (written > 0) db.signal({ kind: "events" });
  if (rows.some(({ what }) => what === "settled")) signalReleased(db);
  const goesOn =
    rows.some(({ what }) => what === "freed") || finished.some(({ state }) => state === "queued");
  if (goesOn) db.signalOthers({ kind: "work" });
  if (finished.some(({ state }) => state === "delayed")) db.signal({ kind: "due" });
  const criticalWaits = rows.filter(({ what }) => what === "critical").map(({ lane }) => lane);
  return {
    finished,
    claimed,
    expired: toExpired(rows),
    ...(criticalWaits.length > 0 && { criticalWaits }),
    ...(durable === undefined || finished.length === 0 ? {} : { durable }),
  };
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
  const started = rows.filter(({ what }) => what === "running" || what === "assigned");
  for (const { number } of started) db.sawEvent(Number(number));
  const tasks = await toTaskRecords(
    db,
    started.map((row) => ({ ...row, ...JUST_CLAIMED, held_state: row.what as HeldState, held_node: node })),
  );
  return tasks.map((task, index) => ({
    token: Number(started[index]?.number),
    task,
    bytes: jsonWeight(started[index]?.spec ?? ""),
  }));
}

function toExpired(rows: readonly StepRow[]): TaskLabels[] {
  return rows
    .filter(({ what }) => what === "expired")
    .map(({ tenant, agent, lane }) => ({ tenant, agent, lane }));
}

/** The columns that are the same for every task that has just been claimed. */
export const JUST_CLAIMED = {
  resting_state: "queued",
  last_started_at: null,
  last_outcome: null,
  last_node: null,
  completed_at: null,
  result: null,
  error: null,
} as const;

export interface StepRow extends Omit<TaskRow, keyof typeof JUST_CLAIMED | "held_state" | "held_node"> {
  readonly what: "lost" | HeldState | "expired" | "settled" | "freed" | "critical";
  /** The token. */
  readonly number: string;
}

/** If an attempt is ended several times, the first end counts. */
export function firstOfEach<Finish extends FinishedAttempt>(finishes: readonly Finish[]): readonly Finish[] {
  const tokens = new Set(finishes.map(({ token }) => token));
  if (tokens.size === finishes.length) return finishes;
  return finishes.filter(({ token }) => tokens.delete(token));
}

/** Null if there is none. */
function anyOf<T>(values: readonly (T | null)[]): readonly (T | null)[] | null {
  return values.some((value) => value !== null) ? values : null;
}

/** Null if nothing has begun, so that the database has nothing to do. */
function begunValues(begun: readonly BegunAttempt[]): ((number | null)[] | null)[] {
  if (begun.length === 0) return [null, null, null];
  return [
    begun.map(({ seq }) => seq),
    begun.map(({ token }) => token),
    begun.map(({ startedAt = null }) => startedAt),
  ];
}

export function resultOf({ settlement }: FinishedAttempt): string | null {
  return settlement.to === "done" ? (jsonText(settlement.result) ?? "null") : null;
}

/** What there is to write about an end besides `done` and the result; null: nothing. */
export function toFinishRow({ settlement, usage, summary }: FinishedAttempt, n: number): object | null {
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
export function toJson(rows: readonly (object | null)[]): string | null {
  const given = rows.filter((row) => row !== null);
  return given.length === 0 ? null : JSON.stringify(given);
}

export function toProgressRow(
  { seq, token, progress }: FinishAndClaimParams["progress"][number],
  n: number,
): object {
  // As text: the database does not parse it, because its JSON parser refuses some characters.
  return { n, seq, token, progress: JSON.stringify(progress) ?? "null" };
}

/** The columns that differ between tasks that have just started. */
export const STARTED_COLUMNS = `
  seq bigint, id text, tenant text, agent text, lane text, priority integer, "position" integer, created_at bigint,
  run_at bigint, deadline bigint, retry_count integer, batch text, session text, schedule bigint, concurrency_key text,
  callback_url text, executions integer,
  started_at bigint, spec text, input_tokens bigint, output_tokens bigint, context_window bigint,
  held_attempt integer, held_since bigint`;

/** These columns of a task `t` that has just started. */
export function startedTask(lane: string, now: string): string {
  return `t.seq, t.id, t.tenant, t.agent, ${lane}, t.priority, t.position, t.created_at,
    t.run_at, t.deadline, t.retry_count, t.batch, ${SESSION_KEY}, t.schedule, t.concurrency_key, t.callback_url,
    t.executions, t.started_at, t.spec, t.input_tokens, t.output_tokens, t.context_window, t.executions + 1, ${now}`;
}

export const FINISH_AND_CLAIM_FUNCTIONS = readSql(new URL("./finish-and-claim.sql", import.meta.url), {
  EXPIRED_PER_CLAIM_MAX,
  STARTED_COLUMNS,
  SESSIONS_DEFERRED: isDeferred("sessions"),
  BATCHES_DEFERRED: isDeferred("batches"),
  KEYS_DEFERRED: isDeferred("keys"),
  RELEASED_MAX,
  KEYS_LOOKED_AT_AFTER_END: KEYS_LOOKED_AT.afterEnd,
  STARTED_IN_LANES: startedTask("p_lanes[i]", "v_now"),
  KEYS_LOOKED_AT_KEYS: KEYS_LOOKED_AT.keys,
  PREEMPT,
  ALONE_FOR_NODE: aloneFor("p_node"),
  AGENT_LIMIT: agentLimitOf("n", "l.per_agent"),
  STARTED_ALONE: startedTask("v_lane", "v_now"),
  ENDING_VARIABLES,
  END_HELD_ATTEMPTS: endAttempts(
    heldEnds("unnest(p_seqs, p_tokens, p_results) with ordinality f(seq, token, result, n)", "p_node"),
  ),
});

/** The query `ended` of `endAttempts`: takes the attempts `f` away that `holder` still holds. p_more: other values of some of them. */
export function heldEnds(f: string, holder: string): string {
  return `
  ended as (
    delete from lease l
     using ${f}
      left join json_to_recordset(p_more)
             as m(n bigint, state text, error text, run_at bigint, input_tokens bigint, output_tokens bigint,
                  context_tokens bigint, context_window bigint, summary text) on m.n = f.n
     where l.task_seq = f.seq and l.token = f.token and l.node = ${holder}
    returning f.n, l.task_seq, l.token, l.node, l.line, l.attempt, l.started_at, coalesce(m.state, 'done') as state,
              case coalesce(m.state, 'done') when 'done' then 'done' when 'queued' then 'interrupted' else 'failed' end as outcome,
              coalesce(m.state = 'delayed', false) as counted, f.result, m.error, m.run_at, m.input_tokens, m.output_tokens,
              m.context_tokens, m.context_window, m.summary)`;
}
