import { CONSECUTIVE_CRITICAL_MAX, isCritical } from "../../../../model/priority.ts";
import type { HeldState } from "../../../../model/task-state.ts";
import { jsonWeight } from "../../../../model/text/json-weight.ts";
import type { ClaimedTask, TaskOrigin } from "../../../storage.ts";
import { inTens, RowBatch, rowStatement } from "../../connection/row-batch.ts";
import type { Transaction } from "../../connection/transaction.ts";
import type { AgentQueue, ReadyEntry } from "../../counters/ledger.ts";
import { hasQueuesByKind, IS_ALONE, isExecutable } from "../../counters/standing.ts";
import type { TenantQueue } from "../../counters/tenant-ledger.ts";
import { shareOut } from "../../tenants/steps/share-out.ts";
import type { SlotsLeft } from "../../tenants/tenant-shares.ts";
import type { Lease } from "../lease.ts";
import { earlierAttempts, toUsage, type UsageColumns } from "../task-row.ts";

/**
 * Claims up to `limit` tasks of a lane, in the same order as `limit` claims of one task would. What it
 * reads grows with `limit`, not with the number of waiting tasks.
 */
export function claimTasks(tx: Transaction, params: ClaimParams): ClaimedTask[] {
  if (!hasSharedLimits(tx, params.lane)) return claimAtOnce(tx, params);
  const claimed: ClaimedTask[] = [];
  while (claimed.length < params.limit) {
    const next = claimAtOnce(tx, { ...params, limit: 1 });
    if (next.length === 0) break;
    claimed.push(...next);
  }
  return claimed;
}

/**
 * Claims up to `limit` tasks for slots that are not free yet, until the next task is one that may not wait on a node. Only for the
 * contract: an exchange with SQLite is too short to claim ahead.
 */
export function claimAhead(tx: Transaction, params: Omit<ClaimParams, "state">): ClaimedTask[] {
  if (tx.ledger.lane(params.lane).strategy !== "fair-fifo") return [];
  const claimed: ClaimedTask[] = [];
  while (claimed.length < params.limit && mayNextBeHeld(tx, params)) {
    const next = claimAtOnce(tx, { ...params, limit: 1, state: "assigned" });
    if (next.length === 0) break;
    claimed.push(...next);
  }
  return claimed;
}

/** Whether a critical task of the lane only lacks a slot. */
export function isCriticalLeft(tx: Transaction, name: string): boolean {
  const { ledger } = tx;
  if (ledger.lane(name).strategy !== "fair-fifo") return false;
  ledger.countTenants();
  return ledger.tenants
    .adoptAll(name)
    .some((tenant) => tenant.urgent_lines > 0 && ledger.tenants.room(tenant) > 0);
}

function mayNextBeHeld(tx: Transaction, params: Omit<ClaimParams, "state">): boolean {
  const { ledger } = tx;
  const [tenant] = shareOut(tx, ledger.lane(params.lane), { slots: 1, left: params.left });
  if (tenant === undefined) return false;
  const agentQueue = first(
    candidateAgentQueues(tx, tenant, { count: 1, ahead: false }).filter((each) => ledger.room(each) > 0),
    compareFairness,
  );
  return (
    tx
      .prepare(
        `select 1 from task t
          where t.seq = ? and t.session is null and t.concurrency_key is null and t.executions = 0
            and t.retry_count = 0 and t.max_retries_if_lost > 0
            and not exists (select 1 from batch b where b.id = t.batch and b.parallelism is not null)`,
      )
      .get(agentQueue?.head_seq) !== undefined
  );
}

interface ClaimParams {
  readonly node: string;
  readonly lane: string;
  readonly limit: number;
  readonly state: HeldState;
  /** How many of the node's slots each tenant may still take; each start reduces it. Null: no limit. */
  readonly left: SlotsLeft | null;
}

/** Whether an agent may have several queues in this lane: what one of them starts leaves less room for the others. */
function hasSharedLimits(tx: Transaction, lane: string): boolean {
  return (
    hasQueuesByKind(tx.db) &&
    tx.prepare("select 1 from line where lane = ? and kind <> '' and standing = 0 limit 1").get(lane) !==
      undefined
  );
}

function claimAtOnce(tx: Transaction, params: ClaimParams): ClaimedTask[] {
  const lane = tx.ledger.lane(params.lane);
  if (lane.waiting === 0) return [];
  const room = lane.total === null ? params.limit : Math.min(params.limit, lane.total - lane.inflight);
  const turns = room > 0 ? shareOut(tx, lane, { slots: room, left: params.left }) : [];
  const tokensOf = new Map<TenantQueue, number[]>();
  for (const tenant of turns) {
    params.left?.take(tenant.tenant);
    const tokens = tokensOf.get(tenant) ?? [];
    tokens.push(tx.db.nextEventSeq());
    tokensOf.set(tenant, tokens);
  }
  const picks = [...tokensOf].flatMap(([tenant, tokens]) => chooseTasks(tx, tenant, tokens));
  if (tokensOf.size > 1) picks.sort((a, b) => a.token - b.token);
  const leases = new RowBatch(tx, INSERT_USUAL_LEASES);
  const queued = readQueued(
    tx,
    picks.map(({ taskSeq }) => taskSeq),
  );
  const claimed = picks.map((pick) => startAttempt(tx, pick, { ...params, leases, queued }));
  leases.write();
  return claimed;
}

/** How many agent queues with tasks that run alone one claim checks. */
export const ALONE_LOOKED_AT = 100;

/** Claims one task that runs alone. Of the agent queues that can start such a task, the one served longest ago goes first. */
export function claimAloneTask(
  tx: Transaction,
  params: { node: string; lanes: readonly string[] },
): ClaimedTask[] {
  const { ledger } = tx;
  const ids = tx
    .prepare<number>(
      `select id from line where ${IS_ALONE} and ready > 0 and lane in (select value from json_each(?))
        order by last_served, id limit +?`,
    )
    .pluck()
    .all(JSON.stringify(params.lanes), ALONE_LOOKED_AT);
  const agentQueue = ledger.agentQueuesOf(ids).find((candidate) => canRunAlone(tx, candidate));
  if (agentQueue === undefined) return [];
  const token = tx.db.nextEventSeq();
  const tenant = ledger.tenants.of(agentQueue);
  tenant.preemptionCredit = Math.max(tenant.preemptionCredit - 1, 0);
  tenant.last_served = token;
  countStart(tx, agentQueue, token);
  return ledger
    .takeReady(agentQueue, 1)
    .map(({ task_seq: taskSeq }) =>
      startAttempt(tx, { agentQueue, taskSeq, token }, { ...params, state: "running" }),
    );
}

function canRunAlone(tx: Transaction, agentQueue: AgentQueue): boolean {
  const { ledger } = tx;
  const { total, inflight } = ledger.lane(agentQueue.lane);
  return (
    (total === null || inflight < total) &&
    ledger.mayRunAlone(agentQueue) &&
    !ledger.tenants.isAtBound(agentQueue) &&
    ledger.tenants.shareRoom(ledger.tenants.of(agentQueue)) > 0 &&
    isExecutable(tx.db, agentQueue)
  );
}

/** A task to start. Its fencing token is also the number of its `task.started` event. */
export interface Pick {
  readonly agentQueue: AgentQueue;
  readonly taskSeq: number;
  readonly token: number;
}

/**
 * Chooses what a tenant starts, one task for each token. Critical tasks go ahead of fairness, but after `CONSECUTIVE_CRITICAL_MAX`
 * consecutive ones one start is fair again.
 */
function chooseTasks(tx: Transaction, tenant: TenantQueue, tokens: readonly number[]): Pick[] {
  const picks: Pick[] = [];
  const fair = tx.ledger.lane(tenant.lane).strategy === "fair-fifo";
  while (picks.length < tokens.length) {
    const left = tokens.slice(picks.length);
    const aheadMax = fair
      ? Math.min(left.length, CONSECUTIVE_CRITICAL_MAX - tenant.ahead_streak)
      : left.length;
    // `urgent_lines` may be too high by now, never too low.
    const ahead =
      aheadMax > 0 && tenant.urgent_lines > 0 ? chooseAhead(tx, tenant, left.slice(0, aheadMax)) : [];
    picks.push(...ahead);
    if (fair) tenant.ahead_streak += ahead.length;
    if (ahead.length > 0) continue;
    // If nothing goes ahead, all remaining starts are fair; after the most consecutive critical tasks, one start is.
    picks.push(...chooseFairly(tx, tenant, aheadMax > 0 ? left : left.slice(0, 1)));
    tenant.ahead_streak = 0;
  }
  tenant.preemptionCredit = Math.max(tenant.preemptionCredit - tokens.length, 0);
  tenant.last_served = tokens.at(-1) ?? tenant.last_served;
  return picks;
}

/** For each token the smallest (rank, seq) among the heads that go ahead, as long as there are any. */
function chooseAhead(tx: Transaction, tenant: TenantQueue, tokens: readonly number[]): Pick[] {
  const { ledger } = tx;
  const candidates = candidateAgentQueues(tx, tenant, { count: tokens.length, ahead: true });
  const picks: Pick[] = [];
  for (const token of tokens) {
    const agentQueue = first(
      candidates.filter((agentQueue) => ledger.isAhead(agentQueue) && ledger.room(agentQueue) > 0),
      (a, b) => compare(a.head_rank, b.head_rank) || compare(a.head_seq, b.head_seq),
    );
    if (agentQueue === undefined) break;
    countStart(tx, agentQueue, token);
    for (const { task_seq: taskSeq } of ledger.takeReady(agentQueue, 1))
      picks.push({ agentQueue, taskSeq, token });
  }
  return picks;
}

/** For each token the agent queue with the fewest tasks in flight; of several, the one served longest ago. */
function chooseFairly(tx: Transaction, tenant: TenantQueue, tokens: readonly number[]): Pick[] {
  const { ledger } = tx;
  const candidates = candidateAgentQueues(tx, tenant, { count: tokens.length, ahead: false });
  const starts: { agentQueue: AgentQueue; token: number }[] = [];
  const starting = new Map<AgentQueue, number>();
  for (const token of tokens) {
    let agentQueue: AgentQueue | undefined;
    for (const other of candidates) {
      if (ledger.room(other) > 0 && (agentQueue === undefined || compareFairness(other, agentQueue) < 0))
        agentQueue = other;
    }
    if (agentQueue === undefined)
      throw new Error(`tenant ${tenant.tenant} has fewer to start than it counts`);
    countStart(tx, agentQueue, token);
    starts.push({ agentQueue, token });
    starting.set(agentQueue, (starting.get(agentQueue) ?? 0) + 1);
  }
  // The order of the agent queues is settled. Now one query reads the tasks of each.
  const taken = new Map<AgentQueue, ReadyEntry[]>();
  for (const [agentQueue, many] of starting)
    taken.set(agentQueue, ledger.takeReady(agentQueue, many).reverse());
  return starts.map(({ agentQueue, token }) => {
    const entry = taken.get(agentQueue)?.pop();
    if (entry === undefined) throw new Error(`line ${agentQueue.id} ran out of tasks`);
    return { agentQueue, taskSeq: entry.task_seq, token };
  });
}

/**
 * Agent queues of a tenant that may hold its next `count` starts: the first ones by the index, and those that this transaction
 * has changed, since the index does not have these changes yet.
 */
export function candidateAgentQueues(
  tx: Transaction,
  { lane, tenant }: { readonly lane: string; readonly tenant: string },
  { count, ahead }: { count: number; ahead: boolean },
): AgentQueue[] {
  const touched = tx.ledger.agentQueuesTouchedIn(lane).filter((agentQueue) => agentQueue.tenant === tenant);
  const ids = tx
    .prepare<number>(
      `select id from line where lane = ? and tenant = ? and startable = 1
          ${ahead ? "and ahead = 1 order by head_rank, head_seq" : "order by inflight, last_served, id"} limit +?`,
    )
    .pluck()
    .all(lane, tenant, count + touched.length);
  return [...new Set([...touched, ...tx.ledger.agentQueuesOf(ids)])];
}

export function countStart({ ledger }: Transaction, agentQueue: AgentQueue, token: number): void {
  const lane = ledger.lane(agentQueue.lane);
  agentQueue.ready -= 1;
  agentQueue.waiting -= 1;
  agentQueue.inflight += 1;
  agentQueue.last_served = token;
  lane.waiting -= 1;
  lane.inflight += 1;
}

/** The columns of every task that a claim reads. */
interface QueuedTask {
  readonly seq: number;
  readonly id: string;
  readonly priority: number;
  readonly position: number;
  readonly created_at: number;
  readonly deadline: number | null;
  readonly retry_count: number;
  readonly executions: number;
  readonly spec: string;
  /** Whether the others have a value. */
  readonly has_rare: 0 | 1;
}

/** Columns that are null or 0 in most tasks. Half of the columns are read in two thirds of the time. */
interface RareColumns extends UsageColumns {
  readonly run_at: number | null;
  readonly started_at: number | null;
  readonly batch: string | null;
  readonly callback_url: string | null;
  readonly has_dependants: 0 | 1;
  readonly preemptions_left: number;
  readonly session: number | null;
  readonly origin: TaskOrigin;
  readonly schedule: number | null;
  readonly concurrency_key: string | null;
}

const NOTHING_RARE: RareColumns = {
  run_at: null,
  started_at: null,
  batch: null,
  callback_url: null,
  has_dependants: 0,
  preemptions_left: 0,
  session: null,
  origin: "task",
  schedule: null,
  concurrency_key: null,
  input_tokens: null,
  output_tokens: null,
  context_window: null,
};

const READ_QUEUED = rowStatement(
  "?",
  (seqs) => `
    select seq, id, priority, position, created_at, deadline, retry_count, executions, spec,
           coalesce(run_at, started_at, batch, callback_url, session, schedule, concurrency_key, input_tokens,
                    output_tokens, context_window) is not null
             or has_dependants or preemptions_left or origin <> 'task' as has_rare
      from task where seq in (${seqs}) and resting_state = 'queued'`,
);
const READ_RARE = `select ${Object.keys(NOTHING_RARE).join(", ")} from task where seq = ?`;

/** The queued ones of these tasks, by number. One query reads ten. */
function readQueued(tx: Transaction, seqs: readonly number[]): ReadonlyMap<number, QueuedTask> {
  const queued = new Map<number, QueuedTask>();
  for (const { statement, rows } of inTens(READ_QUEUED, seqs)) {
    for (const row of tx.prepare<QueuedTask>(statement).all(...rows)) queued.set(row.seq, row);
  }
  return queued;
}

interface StartParams {
  readonly node: string;
  readonly state: HeldState;
  /** Where the lease of a usual task is written later; left out: it is written at once. */
  readonly leases?: RowBatch;
  /** What was read of the task already; left out: nothing. */
  readonly queued?: ReadonlyMap<number, QueuedTask>;
}

export function startAttempt(
  tx: Transaction,
  pick: Pick,
  { node, state, leases, queued }: StartParams,
): ClaimedTask {
  const { ledger, now } = tx;
  const { agentQueue, taskSeq, token } = pick;
  const row = (queued ?? readQueued(tx, [taskSeq])).get(taskSeq);
  if (row === undefined) throw new Error(`task ${taskSeq} is ready but not queued`);
  const rare = row.has_rare === 1 ? readRare(tx, taskSeq) : NOTHING_RARE;
  const { priority, executions } = row;
  const { batch, session, origin } = rare;
  if (session !== null || origin !== "task") ledger.countSpecial(agentQueue, { session, origin }, -1);
  const { tenant, agent, lane } = agentQueue;
  const attempt = executions + 1;
  const lease: Lease = {
    task_seq: taskSeq,
    token,
    node,
    line: agentQueue.id,
    state,
    attempt,
    started_at: now,
    calls_back: rare.callback_url === null ? 0 : 1,
    has_dependants: rare.has_dependants,
    batch,
    session,
    origin,
    concurrency_key: rare.concurrency_key,
  };
  writeLease(tx, { priority, preemptions_left: rare.preemptions_left }, lease, leases);
  if (state === "running")
    ledger.events.add({ seq: token, type: "task.started", at: now, tenant, taskSeq, data: { attempt } });
  const attempts = executions === 0 ? [] : earlierAttempts(tx.db, taskSeq);
  attempts.push({ number: attempt, startedAt: now, endedAt: null, outcome: null, error: null, node });
  return {
    token,
    bytes: jsonWeight(row.spec),
    task: {
      seq: taskSeq,
      id: row.id,
      tenant,
      agent,
      lane,
      priority,
      state,
      position: row.position,
      createdAt: row.created_at,
      runAt: rare.run_at,
      deadline: row.deadline,
      retryCount: row.retry_count,
      batch,
      session: session === null ? null : ledger.sessions.get(session).key,
      schedule: rare.schedule,
      concurrencyKey: rare.concurrency_key,
      callbackUrl: rare.callback_url,
      startedAt: rare.started_at ?? (state === "running" ? now : null),
      completedAt: null,
      spec: JSON.parse(row.spec),
      result: undefined,
      error: null,
      usage: toUsage(rare),
      attempts,
    },
  };
}

function readRare(tx: Transaction, seq: number): RareColumns {
  const row = tx.prepare<RareColumns>(READ_RARE).get(seq);
  if (row === undefined) throw new Error(`task ${seq} is gone`);
  return row;
}

const USUAL_LEASE = "task_seq, token, node, line, state, attempt, started_at, priority";
const INSERT_USUAL_LEASES = rowStatement(
  "(?, ?, ?, ?, ?, ?, ?, ?)",
  (rows) => `insert into lease (${USUAL_LEASE}) values ${rows}`,
);
const INSERT_LEASE = `
  insert into lease (${USUAL_LEASE}, origin, calls_back, has_dependants, batch, session, concurrency_key, preemptible)
  values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;

function writeLease(
  tx: Transaction,
  { priority, preemptions_left }: { readonly priority: number; readonly preemptions_left: number },
  lease: Lease,
  leases?: RowBatch,
): void {
  const usual = [
    ...[lease.task_seq, lease.token, lease.node, lease.line, lease.state, lease.attempt, lease.started_at],
    priority,
  ];
  // Each value that is passed costs a tenth of a microsecond. These are null or 0 for most tasks, as by default.
  const rare = [
    ...[lease.calls_back, lease.has_dependants, lease.batch, lease.session, lease.concurrency_key],
    lease.state === "running" && preemptions_left > 0 && !isCritical(priority) ? 1 : 0,
  ];
  const isUsual = lease.origin === "task" && rare.every((value) => value === null || value === 0);
  if (isUsual && leases !== undefined) leases.add(usual);
  else if (isUsual) tx.prepare(INSERT_USUAL_LEASES.one).run(...usual);
  else tx.prepare(INSERT_LEASE).run(...usual, lease.origin, ...rare);
  tx.db.leases.keep(lease);
}

export function compareFairness(a: AgentQueue, b: AgentQueue): number {
  return a.inflight - b.inflight || a.last_served - b.last_served || a.id - b.id;
}

function first<T>(items: readonly T[], order: (a: T, b: T) => number): T | undefined {
  return items.reduce<T | undefined>(
    (best, item) => (best === undefined || order(item, best) < 0 ? item : best),
    undefined,
  );
}

function compare(a: number | null, b: number | null): number {
  return (a ?? Number.POSITIVE_INFINITY) - (b ?? Number.POSITIVE_INFINITY);
}
