import { CONSECUTIVE_CRITICAL_MAX, PRIORITY_CRITICAL } from "../../../model/priority.ts";
import { jsonWeight } from "../../../model/text/json-weight.ts";
import {
  ALL_AGENTS,
  type AssignedTask,
  EXPIRED_PER_CLAIM_MAX,
  endsOfRota,
  type WorkerExchange,
  type WorkerExchangeParams,
} from "../../storage.ts";
import { firstOfEach } from "../../waves.ts";
import { canWorkerRun, isAlone, isForWorkers } from "../connection/abilities.ts";
import type { PostgresDatabase } from "../connection/database.ts";
import { readSql } from "../connection/sql-file.ts";
import { agentLimitOf } from "../counters/counters.ts";
import { JUST_CLAIMED, resultOf, toFinishRow, toJson, toProgressRow } from "../tasks/finish-and-claim.ts";
import { PREEMPT } from "../tasks/preempt-tasks.ts";
import { signalReleased } from "../tasks/release.ts";
import { RELEASED_MAX } from "../tasks/settle-moves.ts";
import { SESSION_KEY, TASK_COLUMNS, TASK_TABLES, type TaskRow, toTaskRecords } from "../tasks/task-row.ts";

/** What workers do all the time, in one transaction and one round trip: end attempts and ask for others. */
export async function exchangeForWorkers(
  db: PostgresDatabase,
  params: WorkerExchangeParams,
): Promise<WorkerExchange> {
  const finishes = firstOfEach(params.finishes);
  const exchange = {
    name: "worker_exchange",
    text: "select * from worker_exchange($1, $2, $3, $4, $5, $6, $7, $8, $9)",
    values: [
      finishes.map(({ seq }) => seq),
      finishes.map(({ token }) => token),
      finishes.map(({ worker }) => worker),
      finishes.map(({ recorded }) => recorded),
      finishes.map(resultOf),
      toJson(finishes.map(toFinishRow)),
      toJson(params.progress.map((report, n) => ({ ...toProgressRow(report, n), worker: report.worker }))),
      toJson(params.polls.map((poll, n) => ({ ...poll, n }))),
    ],
  };
  const { rows, durable } =
    finishes.length > 0
      ? await db.writeEarly<WorkerStepRow>(exchange)
      : { rows: await db.write<WorkerStepRow>(exchange), durable: undefined };
  const has = (what: WorkerStepRow["what"]) => rows.some((row) => row.what === what);
  const lost = new Set(rows.filter(({ what }) => what === "lost").map(({ number }) => Number(number)));
  const finished = finishes
    .filter(({ token }) => !lost.has(token))
    .map(({ token, settlement }) => ({ token, state: settlement.to }));
  const claimed = await toClaimed(db, rows, params);
  if (
    rows.some(({ what }) => what !== "gone" && what !== "held") ||
    finished.length + params.progress.length > 0
  )
    db.signal({ kind: "events" });
  if (has("settled")) signalReleased(db);
  if (has("freed") || has("settled") || finished.some(({ state }) => state === "queued"))
    db.signal({ kind: "work" });
  if (finished.some(({ state }) => state === "delayed")) db.signal({ kind: "due" });
  const decided = endsOfRota(finishes, finished);
  if (decided.length > 0) db.signal({ kind: "fenced", tokens: decided, reason: "cancelled" });
  return {
    finished,
    claimed,
    expired: rows
      .filter(({ what }) => what === "expired")
      .map(({ tenant, agent, lane }) => ({ tenant, agent, lane })),
    held: has("held"),
    ...(durable === undefined || finished.length === 0 ? {} : { durable }),
  };
}

interface WorkerStepRow extends Omit<TaskRow, keyof typeof JUST_CLAIMED | "held_state" | "held_node"> {
  readonly what: "lost" | "expired" | "settled" | "freed" | "gone" | "repeated" | "assigned" | "held";
  /** The token. */
  readonly number: string;
  readonly poll: number;
  readonly nonce: string;
}

async function toClaimed(
  db: PostgresDatabase,
  rows: readonly WorkerStepRow[],
  { polls }: WorkerExchangeParams,
): Promise<WorkerExchange["claimed"]> {
  const claimed: (AssignedTask[] | null)[] = polls.map(() => []);
  for (const { what, poll } of rows) if (what === "gone") claimed[poll] = null;
  const assigned = rows.filter(({ what }) => what === "assigned");
  for (const { number } of assigned) db.sawEvent(Number(number));
  const tasks = await toTaskRecords(
    db,
    assigned.map((row) => ({
      ...row,
      ...JUST_CLAIMED,
      held_state: "assigned" as const,
      held_node: polls[row.poll]?.worker ?? null,
    })),
  );
  for (const [index, task] of tasks.entries()) {
    const row = assigned[index];
    if (row === undefined) continue;
    const { number, nonce, poll, held_since } = row;
    const bytes = jsonWeight(row.spec);
    claimed[poll]?.push({ token: Number(number), nonce, task, bytes, assignedAt: Number(held_since) });
  }
  const repeated = rows.filter(({ what }) => what === "repeated");
  const records = await readTasks(
    db,
    repeated.map(({ seq }) => seq),
  );
  for (const { seq, number, nonce, poll, created_at } of repeated) {
    const found = records.get(Number(seq));
    if (found !== undefined)
      claimed[poll]?.push({ token: Number(number), nonce, ...found, assignedAt: Number(created_at) });
  }
  return claimed;
}

async function readTasks(db: PostgresDatabase, seqs: readonly string[]) {
  if (seqs.length === 0) return new Map<number, Pick<AssignedTask, "task" | "bytes">>();
  const rows = await db.read<TaskRow>({
    name: "tasks_of_claim",
    text: `select ${TASK_COLUMNS} from ${TASK_TABLES} where t.seq = any ($1)`,
    values: [seqs],
  });
  const tasks = await toTaskRecords(db, rows);
  return new Map(
    tasks.map((task, index) => [task.seq, { task, bytes: jsonWeight(rows[index]?.spec ?? "") }]),
  );
}

/** Whether limits let a task of agent queue `n` in lane `l` start, for a tenant `t`. */
const IS_STARTABLE = `(l.total is null or l.inflight < l.total) and not t.disabled and (t.inflight >= t.lane_max) is not true
  and (t.max_inflight is null or t.max_inflight > (select sum(s.inflight) from tenant_line s where s.tenant = t.tenant))
  and coalesce(${agentLimitOf("n", "l.per_agent")}, 1) > 0`;

/** Whether poll `p` can take a task of agent queue `n`. */
const CAN_TAKE = `p.tenant = n.tenant and least(p.wants - p.assigned, p.slots - p.held) > 0 and not p.alone
  and (p.held = 0 or not ${isAlone("n")}) and (p.only_agents is null or n.agent = any (p.only_agents)) and (p.except_agents is null or n.agent <> all (p.except_agents)) and ${canWorkerRun("n", "p.agents")}`;

/**
 * The agent queue whose first task starts next, with its tenant: of those in v_queues that a poll of v_open can take. A critical
 * task, else the agent queue served longest ago, decides on the lane.
 */
const NEXT_QUEUE = `
  with open as materialized (
    select n.id, n.lane, n.inflight, n.last_served, n.head_rank, n.head_seq, ${isAlone("n")} as alone,
           t.id as owner, t.owed, t.inflight as owner_inflight, t.last_served as owner_served, t.ahead_streak,
           l.strategy = 'fair-fifo' as fair, n.head_rank <= ${PRIORITY_CRITICAL} as critical
      from unnest(v_queues) u(id)
     cross join lateral (select * from line where id = u.id offset 0) n
     cross join lateral (select * from lane where name = n.lane offset 0) l
     cross join lateral (select * from tenant_line where lane = n.lane and tenant = n.tenant offset 0) t
     where n.ready > 0 and ${IS_STARTABLE} and exists (select 1 from unnest(v_open) p where ${CAN_TAKE})),
  of_owner as materialized (
    select o.*, not fair or (fair and critical and ahead_streak < ${CONSECUTIVE_CRITICAL_MAX}) as ahead
      from open o
     where o.owner = (select w.owner from open w
                       where w.lane = (select f.lane from open f order by f.critical desc, f.last_served, f.id limit 1)
                       order by w.owed = 0, w.owner_inflight, w.owner_served, w.owner limit 1))
  select id, owner, alone, case when not fair then ahead_streak when ahead then ahead_streak + 1 else 0 end as streak
    from of_owner
   order by ahead desc, case when ahead then head_rank end, case when ahead then head_seq end, inflight, last_served, id limit 1`;

/** How many more tasks tenant `t` may start in lane `l`; null: any number. */
const ROOM = `least(l.total - l.inflight, t.lane_max - t.inflight, case when t.max_inflight is not null then
  t.max_inflight - (select sum(s.inflight) from tenant_line s where s.tenant = t.tenant) end)`;

/**
 * The agent queues of v_queues that a poll of v_open can take, as one `alike_queues`: then all starts are chosen at once, with the
 * same result as one by one. All nulls if it matters which one comes first: there are several lanes or tenants, critical or
 * other tasks that go ahead, agents with several such queues, tasks that run alone, or polls that can take only some.
 */
const ALIKE_QUEUES = `
  select array_agg(id), array_agg(inflight), array_agg(last_served), array_agg(room), min(inflight), min(owner), min(takers),
         case when min(owner) = max(owner) and min(takers) = max(takers) and bool_and(alike) and count(distinct agent) = count(*)
              then least(sum(room), min(together)) end
    from (select n.id, n.agent, n.inflight, n.last_served, least(n.ready, ${agentLimitOf("n", "l.per_agent")})::bigint as room, t.id as owner,
                 array(select p.n from unnest(v_open) p where ${CAN_TAKE} order by p.n) as takers, ${ROOM} as together,
                 l.strategy = 'fair-fifo' and n.head_rank > ${PRIORITY_CRITICAL} and not ${isAlone("n")} as alike
            from unnest(v_queues) u(id)
           cross join lateral (select * from line where id = u.id offset 0) n
           cross join lateral (select * from lane where name = n.lane offset 0) l
           cross join lateral (select * from tenant_line where lane = n.lane and tenant = n.tenant offset 0) t
           where n.ready > 0 and ${IS_STARTABLE} offset 0) o
   where takers <> '{}'`;

/**
 * The free slots of the polls of v_alike, in the order in which tasks go to them: the worker with the fewest attempts first, then
 * the longest waiting poll. As many as there is room for.
 */
const FREE_SLOTS = `
  select row(p.n, p.worker, p.claim, p.lease_ms, p.hashes[p.assigned + s.i], p.nonces[p.assigned + s.i])::assigned_slot
    from (select p.*, coalesce(sum(p.wants - p.assigned) over (
                   partition by p.worker order by p.n rows between unbounded preceding and 1 preceding), 0) as before
            from unnest(v_open) p where p.n = any (v_alike.takers)) p
   cross join lateral generate_series(1, least(p.wants - p.assigned, p.slots - p.held - p.before)) s(i)
   order by p.held + p.before + s.i, p.n limit v_alike.room`;

/** The columns that differ between tasks that have just been assigned. */
const STARTED_COLUMNS = `
  seq bigint, id text, tenant text, agent text, lane text, priority integer, "position" integer, created_at bigint,
  run_at bigint, deadline bigint, retry_count integer, batch text, session text, schedule bigint, concurrency_key text,
  callback_url text, executions integer,
  started_at bigint, spec text, input_tokens bigint, output_tokens bigint, context_window bigint,
  held_attempt integer, held_since bigint`;

export const WORKER_EXCHANGE_FUNCTIONS = readSql(new URL("./exchange.sql", import.meta.url), {
  STARTED_COLUMNS,
  EXPIRED_PER_CLAIM_MAX,
  RELEASED_MAX,
  IS_ALONE: isAlone("n"),
  ALL_AGENTS,
  IS_FOR_WORKERS: isForWorkers("n"),
  ALIKE_QUEUES,
  FREE_SLOTS,
  NEXT_QUEUE,
  CAN_TAKE,
  STARTED_FOR_WORKER: `t.seq, t.id, t.tenant, t.agent, (select n.lane from line n where n.id = t.line), t.priority, t.position,
    t.created_at, t.run_at, t.deadline, t.retry_count, t.batch, ${SESSION_KEY}, t.schedule, t.concurrency_key, t.callback_url,
    t.executions, t.started_at, t.spec, t.input_tokens, t.output_tokens, t.context_window, t.executions + 1, v_now`,
  IS_STARTABLE,
  PREEMPT,
});
