import { agentKey } from "../../../model/agent.ts";
import { isTerminal } from "../../../model/task-state.ts";
import { isAloneKind } from "../../alone-queue.ts";
import { AHEAD_MAX, type TaskSituation } from "../../storage.ts";
import { canWorkerRun, isForWorkers, isServed, isWorkerAgent, standingOf } from "../connection/abilities.ts";
import { maxOf, tasksOfSession } from "../sessions/settle-sessions.ts";
import {
  agentQueueOf,
  byRank,
  findTask,
  isActive,
  isReady,
  isSameAgent,
  type OracleLane,
  type OracleState,
  type OracleTask,
  sessionOf,
  takerOf,
  toRecord,
} from "../state.ts";
import { holderOf } from "./concurrency-keys.ts";
import { hasSecondEnabledTenant, inflightOfTenant, serving, shareRoom, shareRoomOnNodes } from "./room.ts";

export function readSituation(
  state: OracleState,
  params: { tenant: string; id: string },
): TaskSituation | null {
  const task = findTask(state, params);
  if (task === undefined) return null;
  const inLane = state.tasks.filter(({ lane }) => lane === task.lane);
  const ofAgent = state.tasks.filter((other) => isSameAgent(other, task));
  const sameQueue = inLane
    .filter((other) => isReady(task) && isReady(other) && isSameAgent(other, task))
    .filter((other) => other.queueKind === task.queueKind);
  const ahead = (task.parked === "key" ? waitingForKeyOf(state, task) : sameQueue).sort(byRank);
  const before = ahead.slice(0, Math.max(ahead.indexOf(task), 0)).map(({ id }) => id);
  const parents = state.tasks.filter(
    (parent) => parent.tenant === task.tenant && parent.seq < task.seq && task.dependsOn.includes(parent.id),
  );
  const lane = state.lanes.get(task.lane);
  return {
    task: toRecord(task),
    lane: {
      inflight: inLane.filter(({ held }) => held !== null).length,
      total: lane?.total ?? null,
      perAgent: lane?.perAgent ?? null,
    },
    tenant: {
      disabled: state.tenants.get(task.tenant)?.disabled ?? false,
      inflight: inflightOfTenant(state, task.tenant),
      max: state.tenants.get(task.tenant)?.limits.maxInflight ?? null,
    },
    laneShare: lane === undefined ? null : laneShareOf(state, lane, task.tenant),
    agent: {
      inLane: inLane.filter((other) => other.held !== null && isSameAgent(other, task)).length,
      inflight: ofAgent.filter(({ held }) => held !== null).length,
      max: state.agentLimits.get(agentKey(task)) ?? null,
    },
    ahead: { ids: before.slice(0, AHEAD_MAX.named), count: Math.min(before.length, AHEAD_MAX.counted) },
    batch: batchOf(state, task),
    session: sessionSituation(state, task),
    noExecutor: noExecutorOf(state, task),
    workers: workersOf(state, task),
    alone: aloneOf(task),
    key: keyOf(state, task),
    parents: task.state === "rejected" ? [] : parents.map(({ id, state: found }) => ({ id, state: found })),
  };
}

export function laneShareOf(
  state: OracleState,
  lane: OracleLane,
  tenant: string,
): TaskSituation["laneShare"] {
  if (!hasSecondEnabledTenant(state)) return null;
  const inflight = inflightOfTenant(state, tenant, lane);
  if (lane.perTenant !== null && shareRoom(state, lane, tenant) <= 0)
    return { inflight, max: lane.perTenant };
  const rooms = shareRoomOnNodes(state, lane, tenant);
  const free = [...serving(state, lane)].filter(([, left]) => left > 0).map(([node]) => node);
  if (free.length === 0 || free.some((node) => (rooms.get(node) ?? 0) > 0)) return null;
  const max = sum(free.map((node) => state.nodes.get(node)?.perTenant[lane.name] ?? 0));
  return { inflight: max - sum(free.map((node) => rooms.get(node) ?? 0)), max };
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

function noExecutorOf(state: OracleState, task: OracleTask): TaskSituation["noExecutor"] {
  if (isTerminal(task.state) || task.held !== null) return null;
  if (isExecutable(state, task)) return null;
  return {
    served: isServed(state, task),
    ...lastSeenOf(state, task),
    since: task.unservedAt,
  };
}

function workersOf(state: OracleState, task: OracleTask): TaskSituation["workers"] {
  if (isTerminal(task.state) || task.held !== null) return null;
  const agentQueue = agentQueueOf(state, task);
  if (!isForWorkers(state, agentQueue)) return null;
  const able = [...state.workers.values()].filter(
    (worker) => !worker.lost && !worker.draining && canWorkerRun(state, worker, agentQueue),
  );
  const ids = able.map(({ id }) => id);
  return {
    count: able.length,
    slots: sum(able.map(({ slots }) => slots)),
    held: state.tasks.filter(({ held }) => held !== null && ids.includes(held.node)).length,
  };
}

/** When a node or a worker that names its agent was last seen. `byWorkers`: it was a worker, or the agent is for workers. */
function lastSeenOf(state: OracleState, task: OracleTask): { lastSeenAt: number | null; byWorkers: boolean } {
  const onNode = state.agentsSeen.get(task.agent)?.at ?? null;
  const onWorker = state.workerAgentsSeen.get(agentKey(task)) ?? null;
  const lastSeenAt = Math.max(onNode ?? 0, onWorker ?? 0);
  return {
    lastSeenAt: lastSeenAt === 0 ? null : lastSeenAt,
    byWorkers: isWorkerAgent(state, task) || (onWorker !== null && onWorker >= (onNode ?? 0)),
  };
}

/** Whether a live node or worker can execute it, if only alone. */
export function isExecutable(state: OracleState, task: OracleTask): boolean {
  const agentQueue = agentQueueOf(state, task);
  const standing = isAloneKind(agentQueue.kind) ? standingOf(state, agentQueue) : agentQueue.standing;
  return standing === "executable" || standing === "alone" || isForWorkers(state, agentQueue);
}

function aloneOf(task: OracleTask): TaskSituation["alone"] {
  const waits = !isTerminal(task.state) && task.held === null;
  return waits && isAloneKind(task.queueKind) ? { losses: task.losses } : null;
}

function batchOf(state: OracleState, task: OracleTask): TaskSituation["batch"] {
  const parallelism = state.batches.find(({ id }) => id === task.batch)?.parallelism ?? null;
  if (task.parked !== "batch" || parallelism === null) return null;
  const active = state.tasks.filter((other) => other.batch === task.batch && isActive(other));
  return { parallelism, active: active.slice(0, AHEAD_MAX.named).map(({ id }) => id) };
}

function waitingForKeyOf(state: OracleState, { tenant, concurrencyKey }: OracleTask): OracleTask[] {
  return state.tasks.filter(
    (task) => task.parked === "key" && task.tenant === tenant && task.concurrencyKey === concurrencyKey,
  );
}

function keyOf(state: OracleState, task: OracleTask): TaskSituation["key"] {
  if (task.parked !== "key" || task.concurrencyKey === null) return null;
  return { name: task.concurrencyKey, holder: holderOf(state, task)?.id ?? "" };
}

function sessionSituation(state: OracleState, task: OracleTask): TaskSituation["session"] {
  const session = sessionOf(state, task);
  if (session === undefined || task.parked !== "session") return null;
  const active = tasksOfSession(state, session)
    .filter(({ inSession }) => inSession)
    .sort((a, b) => a.sessionPosition - b.sessionPosition);
  return {
    key: session.key,
    max: maxOf(session),
    active: active.slice(0, AHEAD_MAX.named).map(({ id }) => id),
    takenBy: takerOf(state, task)?.id ?? null,
    offeredUntil: task.steerUntil,
  };
}
