import type { HeldState } from "../../../model/task-state.ts";
import { jsonText } from "../../../model/text/json-text.ts";
import { jsonWeight } from "../../../model/text/json-weight.ts";
import {
  type Claim,
  type ClaimedTask,
  EXPIRED_PER_CLAIM_MAX,
  type FinishAndClaimParams,
  type FinishedAndClaimed,
  type FinishedAttempt,
  KEYS_LOOKED_AT,
  type TaskLabels,
} from "../../storage.ts";
import { type Wave, wavesOf } from "../../waves.ts";
import { isAlone } from "../connection/abilities.ts";
import type { PostgresDatabase } from "../connection/database.ts";
import { readSql } from "../connection/sql-file.ts";
import { cleanText, numberArray } from "../connection/text.ts";
import { agentLimitOf } from "../counters/counters.ts";
import { slotValues } from "../tenants/tenant-shares.ts";
import { isDeferred } from "./deferred-work.ts";
import { APPEND_ENDS, ENDING_VARIABLES, endAttempts, endDoneAttempts, leavesTrace } from "./end-attempt.ts";
import { PREEMPT, preemptAt } from "./preempt-tasks.ts";
import { signalReleased } from "./release.ts";
import { RELEASED_MAX } from "./settle-moves.ts";
import { SESSION_KEY, type TaskRow, toTaskRecords } from "./task-row.ts";

/**
 * What a busy node does all the time, in one round trip: ends attempts and starts others. Exchanges of several nodes that come
 * together are one transaction; see exchange.sql.
 */
export async function finishAndClaim(
  db: PostgresDatabase,
  params: FinishAndClaimParams,
): Promise<FinishedAndClaimed> {
  const waves = wavesOf(params);
  const finishes = waves.flatMap((wave) => wave.finishes);
  const number = db.nextRequest();
  let isRepeated = false;
  const exchange = (tries: number) => {
    isRepeated = tries > 1;
    return {
      name: "exchange",
      text: `call exchange($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, null)`,
      values: [
        params.node,
        number,
        isRepeated,
        numberArray(finishes.map(({ seq }) => seq)),
        numberArray(finishes.map(({ token }) => token)),
        finishes.map(resultOf).join("\n"),
        toJson(finishes.map(toFinishRow)),
        toJson(params.progress.map(toProgressRow)),
        ...begunValues(waves),
        ...claimValues(params.claims),
        anyOf(params.claims.map(({ state = null }) => state)),
        anyOf(params.claims.map(({ ahead = null }) => ahead)),
        params.claimsMax ?? null,
        db.othersAlive,
      ],
    };
  };
  const { rows, durable } =
    finishes.length > 0
      ? await db.writeEarly<ResultRow>(exchange)
      : { rows: await db.write<ResultRow>(exchange), durable: undefined };
  const result = resultIn(rows);
  const lost = new Set(result.lost);
  const finished = finishes
    .filter(({ token }) => !lost.has(token))
    .map(({ token, settlement }) => ({ token, state: settlement.to }));
  const claimed = await toClaimed(db, result, params.node);
  const expired = result.expired ?? [];
  const reported = params.progress.length + (params.begun?.length ?? 0);
  const hasEvents = claimed.length + expired.length + finished.length + reported > 0;
  if (hasEvents || isRepeated) db.signalHere({ kind: "events" });
  // The node whose exchange did this one notifies the others of the events of both. An exchange whose response got lost may have
  // been committed, with events of several nodes.
  if (result.sharedEvents || isRepeated || (hasEvents && !result.served)) db.signalOthers({ kind: "events" });
  if (result.settled) signalReleased(db);
  if (result.freed || finished.some(({ state }) => state === "queued")) db.signalOthers({ kind: "work" });
  else if (result.freedLanes !== null) db.signalOthers({ kind: "work", lanes: result.freedLanes });
  if (finished.some(({ state }) => state === "delayed")) db.signal({ kind: "due" });
  const criticalWaits = result.criticalWaits ?? [];
  return {
    finished,
    claimed,
    expired,
    ...(criticalWaits.length > 0 && { criticalWaits }),
    ...(durable === undefined || finished.length === 0 ? {} : { durable }),
  };
}

/** Lanes, limits, and what tenants may take. */
export function claimValues(claims: readonly Claim[]): unknown[][] {
  const slots = claims.map(({ perTenant }) => slotValues(perTenant));
  return [
    claims.map(({ lane }) => lane),
    claims.map(({ limit }) => limit),
    slots.map(({ each }) => each),
    slots.map(({ left }) => left),
  ];
}

/** What an insert returns besides if it also claims; see insert_and_claim. */
export interface ClaimedRow {
  readonly first_seq: string;
  /** Null: the node is not alive. */
  readonly result: ExchangeResult | null;
  readonly started: readonly StartedWithInsert[] | null;
}

/** `spec` null: the caller has just sent it, or it is large. The row is sent under the write lock. */
type StartedWithInsert = Omit<StartedRow, "spec"> & { readonly spec: string | null };

/** What an insert has claimed besides. `specs`: of the tasks that it has inserted. */
export async function claimedWithInsert(
  db: PostgresDatabase,
  { first_seq, result, started }: ClaimedRow,
  { node, specs }: { node: string; specs: readonly string[] },
): Promise<FinishedAndClaimed> {
  if (result === null) return { finished: [], claimed: [], expired: [] };
  for (const token of result.tokens ?? []) db.sawEvent(token);
  if (result.settled) signalReleased(db);
  const own = (started ?? []).map((row) => ({
    ...row,
    spec: row.spec ?? specs[Number(row.seq) - Number(first_seq)] ?? null,
  }));
  const claimed = await toClaimedTasks(db, await withLargeSpecs(db, own), { at: result.at, node });
  return { finished: [], claimed, expired: result.expired ?? [] };
}

/** Reads large specs. A task that was cancelled and deleted since is left out. */
async function withLargeSpecs(
  db: PostgresDatabase,
  started: readonly StartedWithInsert[],
): Promise<StartedRow[]> {
  const large = started.filter(({ spec }) => spec === null).map(({ seq }) => seq);
  const rows =
    large.length === 0
      ? []
      : await db.read<{ seq: string; spec: string }>({
          name: "large_specs",
          text: "select t.seq, t.spec from unnest($1::bigint[]) u(seq) cross join lateral (select seq, spec from task where seq = u.seq offset 0) t",
          values: [large],
        });
  const read = new Map(rows.map(({ seq, spec }) => [Number(seq), spec]));
  return started.flatMap((row) => {
    const spec = row.spec ?? read.get(Number(row.seq));
    return spec === undefined ? [] : [{ ...row, spec }];
  });
}

/** Claims a task that runs alone, for a node that runs nothing else. */
export async function claimAlone(
  db: PostgresDatabase,
  params: { node: string; lanes: readonly string[] },
): Promise<FinishedAndClaimed> {
  const rows = await db.write<ResultRow>({
    name: "claim_alone",
    text: "select claim_alone($1, $2, $3) as result",
    values: [params.node, params.lanes],
  });
  const result = resultIn(rows);
  const claimed = await toClaimed(db, result, params.node);
  const expired = result.expired ?? [];
  if (result.settled || claimed.length + expired.length > 0) db.signal({ kind: "events" });
  if (result.settled) signalReleased(db);
  return { finished: [], claimed, expired };
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

/** Reads the tasks that an exchange started. One whose attempt has ended since, by a cancel for example, is left out. */
async function toClaimed(
  db: PostgresDatabase,
  { at, seqs, tokens, states }: ExchangeResult,
  node: string,
): Promise<ClaimedTask[]> {
  if (seqs === null || tokens === null || seqs.length === 0) return [];
  for (const token of tokens) db.sawEvent(token);
  const rows = await db.read<StartedRow>({
    name: "started_tasks",
    text: startedTasks("$1", "$2", "$3", { where: STILL_STARTED }),
    values: [numberArray(seqs), numberArray(tokens), states],
  });
  return toClaimedTasks(db, rows, { at, node });
}

async function toClaimedTasks(
  db: PostgresDatabase,
  rows: readonly StartedRow[],
  { at, node }: { at: number; node: string },
): Promise<ClaimedTask[]> {
  const claimed = { ...JUST_CLAIMED, held_node: node, held_since: String(at) };
  // The rows are completed rather than copied: they have many columns.
  const tasks = await toTaskRecords(
    db,
    rows.map((row) => Object.assign(row, claimed, { held_state: row.state })),
  );
  return tasks.map((task, index) => ({
    token: Number(rows[index]?.token),
    task,
    bytes: jsonWeight(rows[index]?.spec ?? ""),
  }));
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

type HeldColumn = "held_state" | "held_node" | "held_since";

interface StartedRow extends Omit<TaskRow, keyof typeof JUST_CLAIMED | HeldColumn> {
  readonly token: string;
  readonly state: HeldState;
}

/** See exchange_result in finish-and-claim.sql. */
interface ExchangeResult {
  readonly at: number;
  readonly lost: readonly number[] | null;
  readonly seqs: readonly number[] | null;
  readonly tokens: readonly number[] | null;
  readonly states: readonly HeldState[] | null;
  readonly criticalWaits: readonly string[] | null;
  readonly expired: readonly TaskLabels[] | null;
  readonly settled: boolean;
  /** Other nodes may be able to start tasks now, in any lane. */
  readonly freed: boolean;
  /** The same in these lanes; null: in none. */
  readonly freedLanes: readonly string[] | null;
  /** The exchange of another node did this one. */
  readonly served: boolean;
  /** This exchange did those of other nodes, too, and the step has appended events. */
  readonly sharedEvents: boolean;
}

interface ResultRow {
  readonly result: ExchangeResult;
}

function resultIn([row]: readonly ResultRow[]): ExchangeResult {
  if (row === undefined) throw new Error("The database returned no result of an exchange.");
  return row.result;
}

/** Null if there is none. */
function anyOf<T>(values: readonly (T | null)[]): readonly (T | null)[] | null {
  return values.some((value) => value !== null) ? values : null;
}

/** The attempts that have begun, and the waves of ends. All null if nothing has begun: the database has nothing to do. */
function begunValues(waves: readonly Wave[]): (string | null)[] {
  const begun = waves.flatMap((wave) => wave.begun);
  if (begun.length === 0) return [null, null, null, null, null];
  return [
    numberArray(begun.map(({ seq }) => seq)),
    numberArray(begun.map(({ token }) => token)),
    numberArray(begun.map(({ startedAt = null }) => startedAt)),
    numberArray(begun.map(({ wave = 0 }) => wave)),
    numberArray(waves.flatMap(({ number, finishes }) => finishes.map(() => number))),
  ];
}

export function resultOf({ settlement }: FinishedAttempt): string | null {
  return settlement.to === "done" ? (settlement.text ?? jsonText(settlement.result) ?? "null") : null;
}

/** What there is to write about an end besides `done` and the result; null: nothing. */
export function toFinishRow({ token, settlement, usage, summary }: FinishedAttempt): object | null {
  if (settlement.to === "done" && usage === undefined && summary === undefined) return null;
  return {
    token,
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

/** Larger specs are not sent under the write lock: a slow reader would hold it. */
const SENT_SPEC_BYTES_MAX = 16_384;

/** Columns of a task `t` in agent queue `n` that has just started. */
const STARTED_TASK = `
  t.seq, t.id, t.tenant, t.agent, n.lane, t.priority, t.position, t.created_at, t.run_at, t.deadline, t.retry_count,
  t.batch, ${SESSION_KEY} as session, t.schedule, t.concurrency_key, t.callback_url, t.executions, t.started_at,
  t.input_tokens, t.output_tokens, t.context_window, t.executions + 1 as held_attempt`;

/**
 * For a read after the commit of the claim. Every end of an attempt changes `resting_state` or counts in `executions`, so that first
 * attempts, which are most, are known without a look at their leases.
 */
const STILL_STARTED = `where t.resting_state = 'queued'
  and case when t.executions = 0 then true
           else exists (select 1 from lease where task_seq = u.seq and token = u.token) end`;

function startedTasks(
  seqs: string,
  tokens: string,
  states: string,
  { spec = "t.spec", where = "" }: { readonly spec?: string; readonly where?: string },
): string {
  return `select u.token, u.state, ${spec} as spec, ${STARTED_TASK}
            from unnest(${seqs}::bigint[], ${tokens}::bigint[], ${states}::text[]) u(seq, token, state)
            cross join lateral (select * from task where seq = u.seq offset 0) t
            cross join lateral (select lane from line where id = t.line offset 0) n
           ${where}
           order by u.token`;
}

/** Attempts `f` that end, with what their nodes report of them; see reports_of. */
const ENDS = `unnest(p_nodes, p_seqs, p_tokens, p_results, p_reports, p_reported_at, p_waves)
       with ordinality f(node, seq, token, result, report, reported_at, wave, n)`;

/** When an attempt `l` began that ends now; it may have begun after it was claimed. */
const STARTED_AT = `case when f.reported_at is null or l.state = 'running' then l.started_at
                         else greatest(least(f.reported_at, p_now), l.started_at) end as started_at`;

/** Takes attempts away that their nodes still hold. p_more: other values of some of them, by token. */
const ENDED = `
  ended as (
    delete from lease l
     using ${ENDS}
      left join json_to_recordset(p_more)
             as m(token bigint, state text, error text, run_at bigint, input_tokens bigint, output_tokens bigint,
                  context_tokens bigint, context_window bigint, summary text) on m.token = f.token
     where l.task_seq = f.seq and l.token = f.token and l.node = f.node
    returning f.n, l.task_seq, l.token, l.node, l.line, l.attempt, ${STARTED_AT},
              coalesce(m.state, 'done') as state,
              case coalesce(m.state, 'done') when 'done' then 'done' when 'queued' then 'interrupted' else 'failed' end as outcome,
              coalesce(m.state = 'delayed', false) as counted, f.result, m.error, m.run_at, m.input_tokens, m.output_tokens,
              m.context_tokens, m.context_window, m.summary,
              ${leavesTrace("l")} or f.report is not null or m.state is distinct from 'queued' as begun)`;

/** Attempts that begin and end in one call: their events alternate. */
const APPEND_IN_WAVES = `
    if v_begun is null then ${APPEND_ENDS}
    else
      perform append_in_waves(
        p_now, v_begun, p_progress,
        -- Both are in the order of the ends.
        case when cardinality(v_tokens) = cardinality(p_tokens) then p_waves
             else array(select w.wave from unnest(p_tokens, p_waves) with ordinality w(token, wave, n)
                         where w.token = any (v_tokens) order by w.n) end,
        v_types, v_tenants, v_seqs, v_data, v_calls_back);
    end if;`;

/** Starts and ends with their waves, for append_in_waves. */
const EVENTS_IN_WAVES = `
  select b.wave, 1 as step, 'task.started' collate "C" as type, b.tenant collate "C" as tenant, b.task_seq as seq,
         '{' || b.data collate "C" || '}' as data, b.report, b.n
    from unnest(p_begun) with ordinality b(task_seq, token, tenant, data, wave, report, n)
  union all
  select coalesce(e.wave, 0), 3, e.type, e.tenant, e.seq, e.data, null, e.n
    from unnest(p_waves, p_types, p_tenants, p_seqs, p_data) with ordinality e(wave, type, tenant, seq, data, n)`;

export const FINISH_AND_CLAIM_FUNCTIONS = readSql(new URL("./finish-and-claim.sql", import.meta.url), {
  EXPIRED_PER_CLAIM_MAX,
  SESSIONS_DEFERRED: isDeferred("sessions"),
  BATCHES_DEFERRED: isDeferred("batches"),
  KEYS_DEFERRED: isDeferred("keys"),
  RELEASED_MAX,
  KEYS_LOOKED_AT_AFTER_END: KEYS_LOOKED_AT.afterEnd,
  KEYS_LOOKED_AT_KEYS: KEYS_LOOKED_AT.keys,
  PREEMPT,
  PREEMPT_AT_P_NOW: preemptAt("p_now"),
  ALONE_FOR_NODE: aloneFor("p_node"),
  AGENT_LIMIT: agentLimitOf("n", "l.per_agent"),
  STARTED_TASKS: startedTasks("v_done.seqs", "v_done.tokens", "v_done.states", {
    spec: `case when t.seq < first_seq and octet_length(t.spec) <= ${SENT_SPEC_BYTES_MAX} then t.spec end`,
  }),
  EVENTS_IN_WAVES,
  ENDING_VARIABLES,
  END_DONE_ATTEMPTS: endDoneAttempts(
    `
  ended as (
    delete from lease l
     using ${ENDS}
     where l.task_seq = f.seq and l.token = f.token and l.node = f.node
    returning f.n, l.task_seq, l.token, l.node, l.line, l.attempt, l.state, ${STARTED_AT}, f.result, f.report, f.wave)`,
    APPEND_IN_WAVES,
  ),
  END_HELD_ATTEMPTS: endAttempts(ENDED, APPEND_IN_WAVES),
});
