import { type AgentName, agentKey } from "../../model/agent.ts";
import type { Clock } from "../../model/clock.ts";
import type { EventType } from "../../model/event.ts";
import { type Lane, NEWCOMER_LEAD } from "../../model/lane.ts";
import { isCritical } from "../../model/priority.ts";
import type { RollupCount, RollupKind, RollupStep } from "../../model/rollup.ts";
import type { SessionMode } from "../../model/session.ts";
import { type AttemptOutcome, TASK_KINDS, type TaskKind } from "../../model/task.ts";
import type { AttemptRecord, TaskRecord } from "../../model/task-record.ts";
import { type TaskState, WAITING_STATES } from "../../model/task-state.ts";
import { DEFAULT_TENANT } from "../../model/tenant.ts";
import { isWorker } from "../../model/worker.ts";
import type { AloneKind } from "../alone-queue.ts";
import type { ComeBack } from "../dependency-error.ts";
import type {
  Abilities,
  AgentRecord,
  AuditChainPoint,
  AuditEntry,
  BatchRecord,
  BulkRecord,
  DeliveryRecord,
  EventData,
  FullQueue,
  Held,
  KeyRecord,
  LaneSetting,
  LogPiece,
  NewBatch,
  NodeDetails,
  NodeRecord,
  RunRecord,
  ScheduleName,
  ScheduleRecord,
  SessionRecord,
  Slots,
  StorageSignal,
  StoredNotification,
  TaskOrigin,
  TenantRecord,
  WebhookSecretRecord,
  WorkerAttempt,
  WorkerRecord,
} from "../storage.ts";

export type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };

export type OracleNode = Mutable<NodeRecord & Omit<NodeDetails, "lanes">> & {
  slots: Slots;
  perTenant: Slots;
  abilities: Abilities | null;
};

export type OracleWorker = Mutable<Omit<WorkerRecord, "held" | "done" | "failed">> & {
  beat: number;
  /** Ended attempts, with the minute in which they ended. */
  ends: { readonly minute: number; readonly ok: boolean }[];
};

export interface OracleWorkerAttempt extends Mutable<Omit<WorkerAttempt, "held">> {
  readonly claim: string;
  readonly nonce: string;
  readonly assignedAt: number;
  readonly timesOutAt: number | null;
  readonly deadline: number | null;
  readonly leaseMs: number;
  named: boolean;
  /** How many heartbeats in a row left it out. */
  missed: number;
  endedAt: number | null;
}

export interface OracleState {
  readonly clock: Clock;
  /** In the order of `seq`. */
  tasks: OracleTask[];
  /** In the order of creation, which decides the last tie between agent queues. */
  agentQueues: OracleAgentQueue[];
  /** In the order of creation, as well. */
  tenantQueues: OracleTenantQueue[];
  /** In the order of `seq`. */
  events: OracleEvent[];
  readonly lanes: Map<string, OracleLane>;
  /** Only agents that were configured, by `agentKey`. */
  readonly agentLimits: Map<string, number | null>;
  /** Ends and retries that dependants still have to follow, oldest first. `comesBack`: they come back with the parent. */
  releases: { parentSeq: number; error: string | null; comesBack: ComeBack | null; afterSeq: number }[];
  /** Tasks that count as open for a bounded owner. */
  boundedTasks: { readonly tenant: string; readonly owner: string; readonly seq: number }[];
  /** Submits of a bounded owner, each with its minute. */
  boundedSubmits: { readonly tenant: string; readonly owner: string; readonly minute: number }[];
  readonly sharedSecrets: Map<string, string>;
  keys: { tenant: string; key: string; hash: string; taskSeq: number; createdAt: number }[];
  /** By `agentKey`. */
  readonly catalogue: Map<string, AgentRecord>;
  /** Changes of the catalogue, by `agentKey`, oldest first. */
  agentChanges: { readonly seq: number; readonly key: string }[];
  lastAgentChange: number;
  /** Only tenants that were created. Tasks may name others. */
  readonly tenants: Map<string, Mutable<TenantRecord>>;
  /** By tenant, the newest first. */
  readonly webhookSecrets: Map<string, readonly WebhookSecretRecord[]>;
  apiKeys: Mutable<KeyRecord>[];
  /** In the order of `seq`. */
  audit: AuditEntry[];
  /** By chain: the last entry that was deleted for its age. */
  readonly auditAnchors: Map<string, AuditChainPoint>;
  bulks: OracleBulk[];
  deliveries: Mutable<OracleDelivery>[];
  /** The state of each host that deliveries go to, by tenant and host. */
  receivers: OracleReceiver[];
  /** The same for all hosts of a tenant that are proven, and for all that are not. */
  deliveryTurns: OracleDeliveryTurn[];
  /** Includes those of deleted tasks, which are never returned. */
  logs: LogPiece[];
  batches: OracleBatch[];
  sessions: OracleSession[];
  /** In the order of their ids, as are the runs. */
  schedules: OracleSchedule[];
  runs: OracleRun[];
  /** In the order of `seq`. */
  notifications: StoredNotification[];
  rollups: OracleRollup[];
  /** The last event that rollups contain. */
  countedUpTo: number;
  /** Of tasks, by `seq`: the tokens that rollups contain. */
  readonly countedTokens: Map<number, number>;
  /** By name. */
  readonly laneSettings: Map<string, LaneSetting>;
  /** Critical tasks that became ready in the operation under way. */
  newCriticalTasks: OracleTask[];
  /** Lanes to recheck: a waiting critical task there may have lost the slot it waits for, or its agent may have room now. */
  readonly lanesToRecheck: Set<string>;
  /** `abilities`: null, the node can execute everything. */
  readonly nodes: Map<string, OracleNode>;
  /** Agents that nodes named which are gone, and when the last of these nodes was alive. */
  readonly agentsSeen: Map<string, { readonly serves: boolean; readonly at: number }>;
  readonly workers: Map<string, OracleWorker>;
  /** Agents of workers that are gone, by `agentKey`, and when the last of these workers was live. */
  readonly workerAgentsSeen: Map<string, number>;
  workerAttempts: OracleWorkerAttempt[];
  /** The kinds that every live node can execute for agents that are not served. */
  commonKinds: ReadonlySet<TaskKind>;
  readonly listeners: Set<(signal: StorageSignal) => void>;
  /** Numbers are never assigned twice, whatever is deleted. */
  lastSessionSeq: number;
  lastScheduleId: number;
  lastRunId: number;
  lastNotificationSeq: number;
  lastTaskSeq: number;
  lastEventSeq: number;
  /** The last of them that an event has, even if that event was deleted. */
  newestEventSeq: number;
  lastAuditSeq: number;
}

export interface OracleTask extends Mutable<Omit<TaskRecord, "attempts">> {
  attempts: Mutable<AttemptRecord>[];
  /** Set if the deadline is the default one, which a manual retry sets anew. */
  readonly defaultDeadlineMs: number | null;
  readonly maxRetriesIfLost: number;
  /** Its rank in its agent queue, the lowest first. */
  rank: number;
  /**
   * Queued, but its session or its batch already runs its maximum, or another task holds its concurrency key. `asking`: it only
   * needs its key, and whether it gets the key is decided once the operation has moved all its tasks.
   */
  parked: "session" | "batch" | "asking" | "key" | null;
  readonly origin: TaskOrigin;
  /** Its turn in its session. */
  sessionPosition: number;
  /** Whether its session has admitted it. It stays so until it ends or is parked again. */
  inSession: boolean;
  /** Until when a running attempt may take it; null: it may not. */
  steerUntil: number | null;
  /** The attempt that has taken it; null: none. */
  takenBy: Held | null;
  /** Whether later messages may be added to it while it waits. */
  collects: boolean;
  /** How often it may still be pre-empted. */
  preemptionsLeft: number;
  /** The summary of its result that its run shows. */
  summary: string | null;
  /** Without dependencies that were deleted after they were done. */
  dependsOn: readonly string[];
  readonly rejection: { full: FullQueue; queued: number } | null;
  /** The only kind that its agent queue holds; null: the queue holds all kinds. */
  queueKind: TaskKind | AloneKind | null;
  /** How often its process died while it ran. */
  losses: number;
  /** Since when no live node is known to be able to execute it, if its agent is not served. */
  unservedAt: number | null;
  /** The lease; null when no node runs it. */
  held: { readonly node: string; readonly token: number } | null;
}

/** With its `source`; see `NewSchedule`. */
export type OracleSchedule = Mutable<ScheduleRecord> & { readonly source: string | null };

export type OracleRun = Mutable<RunRecord>;

export type OracleBatch = NewBatch & Mutable<BatchRecord>;

export interface OracleBulk extends Mutable<BulkRecord> {
  /** The number of the last turn of each bulk action; 0: it had none. */
  served: number;
  leaseUntil: number | null;
}

export interface OracleSession extends Mutable<Omit<SessionRecord, "running" | "queued">> {
  /** Whether a caller changed a setting that is to be kept. */
  pinned: boolean;
  lastPosition: number;
  /** The last position at its last reset: tasks with later positions are of the current generation. */
  generationPosition: number;
  /** A task with this position or an earlier one is stale when it enters the queue. */
  cutoff: number;
  /** The message that others may still be appended to. */
  debounce: { readonly taskSeq: number; readonly since: number; readonly mode: SessionMode } | null;
}

export interface OracleAgentQueue {
  readonly lane: string;
  readonly tenant: string;
  readonly agent: string;
  /** The only kind of tasks that it holds; null: all kinds. */
  readonly kind: TaskKind | AloneKind | null;
  /**
   * Whether a live node can execute its tasks; if not, whether a node that is away serves its agent. `alone`: a node can, but
   * only while it runs nothing else.
   */
  standing: "executable" | "alone" | "away" | "unserved";
  /** Token of its last start; before that, see `NEWCOMER_LEAD`. */
  lastServed: number;
}

/** A tenant in a lane. It exists as long as the tenant has any agent queue. */
export interface OracleTenantQueue {
  readonly lane: string;
  readonly tenant: string;
  /** As in `OracleAgentQueue`, for the tenant in this lane. */
  lastServed: number;
  /** Pre-emption credit: slots that its running tasks gave up for others of its tasks, and that it has not got back yet. */
  preemptionCredit: number;
  /** How many of its critical tasks in a row went ahead of fairness. */
  consecutiveCritical: number;
}

export type OracleLane = Omit<Lane, "concurrency">;

export interface OracleEvent {
  readonly seq: number;
  readonly type: EventType;
  readonly at: number;
  readonly tenant: string;
  readonly taskSeq: number;
  readonly data: EventData | null;
}

export function emptyState(clock: Clock): OracleState {
  return {
    clock,
    tasks: [],
    agentQueues: [],
    tenantQueues: [],
    events: [],
    lanes: new Map(),
    agentLimits: new Map(),
    releases: [],
    boundedTasks: [],
    boundedSubmits: [],
    sharedSecrets: new Map(),
    keys: [],
    catalogue: new Map(),
    agentChanges: [],
    lastAgentChange: 0,
    tenants: new Map([[DEFAULT_TENANT, defaultTenant(clock.now())]]),
    webhookSecrets: new Map(),
    apiKeys: [],
    audit: [],
    auditAnchors: new Map(),
    bulks: [],
    deliveries: [],
    receivers: [],
    deliveryTurns: [],
    batches: [],
    sessions: [],
    schedules: [],
    runs: [],
    notifications: [],
    rollups: [],
    countedUpTo: 0,
    countedTokens: new Map(),
    laneSettings: new Map(),
    newCriticalTasks: [],
    lanesToRecheck: new Set(),
    nodes: new Map(),
    logs: [],
    agentsSeen: new Map(),
    workers: new Map(),
    workerAgentsSeen: new Map(),
    workerAttempts: [],
    commonKinds: new Set(TASK_KINDS),
    listeners: new Set(),
    lastSessionSeq: 0,
    lastScheduleId: 0,
    lastRunId: 0,
    lastNotificationSeq: 0,
    lastTaskSeq: 0,
    lastEventSeq: 0,
    newestEventSeq: 0,
    lastAuditSeq: 0,
  };
}

function defaultTenant(now: number): TenantRecord {
  const limits = {
    maxQueued: null,
    maxInflight: null,
    maxSchedules: null,
    maxSessions: null,
    maxStreams: null,
    maxAgents: null,
    maxStoredBytes: null,
  };
  return {
    id: DEFAULT_TENANT,
    name: DEFAULT_TENANT,
    disabled: false,
    deleting: false,
    limits,
    storedBytes: null,
    createdAt: now,
    updatedAt: now,
  };
}

export function isWaiting(task: { state: TaskState }): boolean {
  return (WAITING_STATES as readonly TaskState[]).includes(task.state);
}

export function isSameAgent(a: AgentName, b: AgentName): boolean {
  return a.tenant === b.tenant && a.agent === b.agent;
}

/** Whether a task is in an agent queue. */
export function isOfAgentQueue(task: OracleTask, agentQueue: OracleAgentQueue): boolean {
  return task.lane === agentQueue.lane && task.queueKind === agentQueue.kind && isSameAgent(task, agentQueue);
}

export function addAgentQueue(
  state: OracleState,
  { lane, tenant, agent, kind }: Pick<OracleAgentQueue, "lane" | "tenant" | "agent" | "kind">,
  standing: OracleAgentQueue["standing"],
): OracleAgentQueue {
  const lastServed = state.lastEventSeq - NEWCOMER_LEAD;
  const agentQueue: OracleAgentQueue = { lane, tenant, agent, kind, standing, lastServed };
  state.agentQueues.push(agentQueue);
  if (!state.tenantQueues.some((each) => each.lane === lane && each.tenant === tenant))
    state.tenantQueues.push({ lane, tenant, lastServed, preemptionCredit: 0, consecutiveCritical: 0 });
  return agentQueue;
}

export function agentQueueOf(state: OracleState, task: OracleTask): OracleAgentQueue {
  const agentQueue = state.agentQueues.find((each) => isOfAgentQueue(task, each));
  if (agentQueue === undefined) throw new Error("Every task has an agent queue.");
  return agentQueue;
}

/** How many tasks of the agent wait, in all lanes. */
export function countWaiting(state: OracleState, agent: AgentName): number {
  return state.tasks.filter((task) => isWaiting(task) && isSameAgent(task, agent)).length;
}

export function findTask(state: OracleState, params: { tenant: string; id: string }): OracleTask | undefined {
  return state.tasks.find((task) => task.tenant === params.tenant && task.id === params.id);
}

/** Whether only limits keep it from starting now. */
export function isReady(task: OracleTask): boolean {
  return task.state === "queued" && task.parked === null;
}

/** By rank; of equals the one accepted first. */
export function byRank(a: OracleTask, b: OracleTask): number {
  return a.rank - b.rank || a.seq - b.seq;
}

/** Whether it takes up room in its batch. */
export function isActive(task: OracleTask): boolean {
  return isReady(task) || task.parked === "asking" || task.held !== null;
}

/** From now on only limits and its concurrency key can keep it from starting. */
export function askForKey(state: OracleState, task: OracleTask): void {
  if (task.concurrencyKey === null) {
    becomeReady(state, task);
    return;
  }
  task.state = "queued";
  task.parked = "asking";
}

/** From now on only limits can keep it from starting. */
export function becomeReady(state: OracleState, task: OracleTask): void {
  task.state = "queued";
  task.parked = null;
  if (isCritical(task.rank)) state.newCriticalTasks.push(task);
}

export function sessionOf(
  state: OracleState,
  { tenant, session: key }: { tenant: string; session: string | null },
): OracleSession | undefined {
  return state.sessions.find((session) => session.tenant === tenant && session.key === key);
}

export function scheduleOf(state: OracleState, { tenant, id }: ScheduleName): OracleSchedule | undefined {
  return state.schedules.find((schedule) => schedule.tenant === tenant && schedule.id === id);
}

/** The task whose attempt has taken a message, while that attempt lasts. */
export function takerOf(state: OracleState, { takenBy }: OracleTask): OracleTask | undefined {
  if (takenBy === null) return undefined;
  return state.tasks.find(({ seq, held }) => seq === takenBy.seq && held?.token === takenBy.token);
}

/** From now on only limits, its batch and its concurrency key can keep it from starting. */
export function enterBatch(state: OracleState, task: OracleTask): void {
  const batch = state.batches.find(({ id }) => id === task.batch);
  if (batch === undefined || batch.parallelism === null) {
    askForKey(state, task);
    return;
  }
  // Whether its batch has room is decided once the operation has moved all its tasks.
  task.state = "queued";
  task.parked = "batch";
}

export interface OracleRollup extends Record<RollupCount, number> {
  readonly tenant: string;
  readonly kind: RollupKind;
  readonly step: RollupStep;
  readonly at: number;
  readonly key: string;
  readonly wait: { buckets: number[]; max: number };
  readonly run: { buckets: number[]; max: number };
}

export type OracleDelivery = Omit<DeliveryRecord, "hostProven">;

/** In microseconds: when it last got a delivery, and when it may get the next. Null: nothing is pending. */
interface Served {
  served: number;
  turn: number | null;
}

export interface OracleReceiver extends Served {
  readonly tenant: string;
  readonly host: string;
  /** Failures in a row. */
  failures: number;
}

export interface OracleDeliveryTurn extends Served {
  readonly tenant: string;
  readonly proven: boolean;
}

/** The tasks that depend on one, in order. */
export function dependantsOf(state: OracleState, parent: OracleTask): OracleTask[] {
  return state.tasks.filter(
    (task) =>
      task.state !== "rejected" &&
      task.tenant === parent.tenant &&
      task.seq > parent.seq &&
      task.dependsOn.includes(parent.id),
  );
}

/** How many of the tasks that one depends on are not done, or not known. */
export function unmetOf(state: OracleState, task: OracleTask): number {
  return task.dependsOn.filter((id) => findTask(state, { tenant: task.tenant, id })?.state !== "done").length;
}

/** An agent's own limit spans lanes: a slot freed in one lane may be what a task in another waits for. */
function recheckLanesOf(state: OracleState, agent: AgentName): void {
  if ((state.agentLimits.get(agentKey(agent)) ?? null) === null) return;
  for (const agentQueue of state.agentQueues)
    if (isSameAgent(agentQueue, agent)) state.lanesToRecheck.add(agentQueue.lane);
}

/** Takes the lease from a task and closes its attempt. One that has not begun is forgotten, unless a worker has it. */
export function endAttempt(
  state: OracleState,
  task: OracleTask,
  outcome: AttemptOutcome,
  error: string | null,
): void {
  const attempt = task.attempts.at(-1);
  if (task.held === null || attempt === undefined)
    throw new Error("Only a running task has an attempt to end.");
  task.held = null;
  recheckLanesOf(state, task);
  if (task.state === "assigned" && !isWorker(attempt.node)) {
    task.attempts.pop();
    return;
  }
  Object.assign(attempt, { endedAt: state.clock.now(), outcome, error });
  task.startedAt ??= attempt.startedAt;
}

/** What a database returns of a value: a copy, without what JSON cannot express. */
export function copyJson<T>(value: T): T {
  return value === undefined ? value : (JSON.parse(JSON.stringify(value)) as T);
}

export function toRecord(task: OracleTask): TaskRecord {
  const {
    defaultDeadlineMs: _1,
    maxRetriesIfLost: _2,
    dependsOn: _3,
    rejection: _4,
    held: _5,
    rank: _6,
    parked: _7,
    preemptionsLeft: _8,
    origin: _9,
    sessionPosition: _10,
    inSession: _11,
    summary: _12,
    queueKind: _13,
    unservedAt: _14,
    losses: _15,
    steerUntil: _16,
    takenBy: _17,
    collects: _18,
    result,
    spec,
    attempts,
    ...rest
  } = task;
  return {
    ...rest,
    spec: copyJson(spec),
    result: copyJson(result),
    attempts: attempts.map((attempt) => ({ ...attempt })),
  };
}

export function signal(state: OracleState, ...signals: StorageSignal[]): void {
  for (const signal of signals) for (const listener of state.listeners) listener(signal);
}
