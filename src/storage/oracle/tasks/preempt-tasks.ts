import { FRONT_RANK, isCritical } from "../../../model/priority.ts";
import { preemptionError } from "../../preemption-error.ts";
import { ableNodes, liveNodes } from "../connection/abilities.ts";
import { addEvent } from "../log/add-event.ts";
import {
  agentQueueOf,
  askForKey,
  byRank,
  endAttempt,
  isReady,
  isSameAgent,
  type OracleLane,
  type OracleState,
  type OracleTask,
  signal,
} from "../state.ts";
import { shareOut } from "../tenants/share-out.ts";
import { agentRoom, freeForTenant, serving, shareRoom, shareRoomOnNodes, tenantRoom } from "./room.ts";
import { settleMoves } from "./settle-moves.ts";

/**
 * Pre-empts a running task for each critical task that finds no free slot: in the lanes where a critical task became ready, and
 * in the lanes to recheck.
 */
export function preempt(state: OracleState): void {
  const newCriticalTasks = state.newCriticalTasks.filter(isReady);
  const touched = new Set([...state.lanesToRecheck, ...newCriticalTasks.map(({ lane }) => lane)]);
  const lanes = [...state.lanes.values()]
    .filter(({ name }) => touched.has(name))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
  const tokens = lanes.flatMap((lane) =>
    preemptIn(
      state,
      lane,
      newCriticalTasks.filter((task) => task.lane === lane.name),
    ),
  );
  if (tokens.length > 0) {
    // A pre-empted task is parked at once if its session may run fewer by now, and its key may go to another task.
    settleMoves(state);
    signal(state, { kind: "events" }, { kind: "fenced", tokens, reason: "preempted" });
    signal(state, { kind: "work" }, { kind: "due" });
  }
  // The tasks that were put back are not new critical tasks, and the slots that were taken need no recheck.
  state.newCriticalTasks = [];
  state.lanesToRecheck.clear();
}

function preemptIn(state: OracleState, lane: OracleLane, newCriticalTasks: readonly OracleTask[]): number[] {
  const criticals = readyCriticals(state, lane);
  const byAgentQueue = [...Map.groupBy(criticals, (task) => agentQueueOf(state, task)).values()];
  const usable = byAgentQueue.flatMap((agentQueue) =>
    agentQueue.slice(0, roomOf(state, lane, agentQueue[0])),
  );
  // A task beyond the limit of its agent needs a slot of that agent.
  const heldByAgent = newCriticalTasks.filter(
    (arrival) => criticals.includes(arrival) && !usable.includes(arrival),
  );
  const nodes = serving(state, lane);
  const unseated = [...Map.groupBy(usable, (task) => ableOf(state, task))].flatMap(([able, tasks]) =>
    able === EVERY_NODE
      ? beyondShares(state, lane, nodes, tasks)
      : withoutSlot(state, lane, only(nodes, able), tasks),
  );
  const tokens: number[] = [];
  for (const critical of [...heldByAgent, ...unseated].sort(byRank)) {
    const able = only(nodes, ableOf(state, critical));
    const victim = victims(state, lane, critical, able, heldByAgent.includes(critical))[0];
    if (victim === undefined) continue;
    tokens.push(giveWay(state, victim, critical));
    owe(state, lane, critical.tenant);
  }
  return tokens;
}

const EVERY_NODE = "every";

/** The nodes that can execute a task. */
function ableOf(state: OracleState, task: OracleTask): string {
  const able = ableNodes(state, agentQueueOf(state, task));
  return able.length === liveNodes(state).length ? EVERY_NODE : JSON.stringify(able);
}

function only(nodes: ReadonlyMap<string, number>, able: string): ReadonlyMap<string, number> {
  if (able === EVERY_NODE) return nodes;
  const names = JSON.parse(able) as string[];
  return new Map([...nodes].filter(([node]) => names.includes(node)));
}

/** The tasks for these nodes that get no free slot there. The first tasks get the free slots, each tenant up to its limits. */
function withoutSlot(
  state: OracleState,
  lane: OracleLane,
  nodes: ReadonlyMap<string, number>,
  usable: readonly OracleTask[],
): OracleTask[] {
  const seated = [...Map.groupBy(usable, ({ tenant }) => tenant)]
    .flatMap(([tenant, tasks]) => {
      const own = Math.min(
        tenantRoom(state, tenant),
        shareRoom(state, lane, tenant),
        freeForTenant(state, lane, nodes, tenant),
      );
      return tasks.sort(byRank).slice(0, Math.max(own, 0));
    })
    .sort(byRank)
    .slice(0, freeSlots(state, lane, nodes));
  return usable.filter((task) => !seated.includes(task));
}

/** The last tasks of each tenant, which are beyond its share of the free slots. */
function beyondShares(
  state: OracleState,
  lane: OracleLane,
  nodes: ReadonlyMap<string, number>,
  usable: readonly OracleTask[],
): OracleTask[] {
  const free = freeSlots(state, lane, nodes);
  const shares = shareOut(state, lane, free, (tenant) => freeForTenant(state, lane, nodes, tenant));
  return [...Map.groupBy(usable, ({ tenant }) => tenant)].flatMap(([tenant, tasks]) =>
    tasks.sort(byRank).slice(shares.get(tenant) ?? 0),
  );
}

/** Adds pre-emption credit: the freed slot is the tenant's. It is for a critical task, so one more may go ahead of fairness. */
export function owe(state: OracleState, lane: OracleLane, tenant: string): void {
  const tenantQueue = state.tenantQueues.find((each) => each.lane === lane.name && each.tenant === tenant);
  if (tenantQueue === undefined) return;
  tenantQueue.preemptionCredit += 1;
  if (lane.strategy === "fair-fifo") tenantQueue.consecutiveCritical -= 1;
}

/** Without tasks of disabled tenants, and without agent queues that no node can execute. */
function readyCriticals(state: OracleState, lane: OracleLane): OracleTask[] {
  return state.tasks
    .filter((task) => task.lane === lane.name && isReady(task) && isCritical(task.rank))
    .filter((task) => !state.tenants.get(task.tenant)?.disabled)
    .filter((task) => agentQueueOf(state, task).standing === "executable")
    .sort(byRank);
}

function roomOf(state: OracleState, lane: OracleLane, task: OracleTask | undefined): number {
  return task === undefined ? 0 : agentRoom(state, lane, task);
}

/** Free slots of a lane, over these nodes. */
function freeSlots(state: OracleState, lane: OracleLane, nodes: ReadonlyMap<string, number>): number {
  const free = [...nodes.values()].reduce((sum, left) => sum + left, 0);
  const inflight = state.tasks.filter((task) => task.lane === lane.name && task.held !== null).length;
  return Math.max(Math.min((lane.total ?? Number.POSITIVE_INFINITY) - inflight, free), 0);
}

/**
 * The tasks that may be pre-empted for a task: the least urgent first, then the one that started last. None if the tenant holds
 * more than its share, because it could not use the freed slot.
 */
function victims(
  state: OracleState,
  lane: OracleLane,
  arrival: OracleTask,
  nodes: ReadonlyMap<string, number>,
  ofSameAgent: boolean,
): OracleTask[] {
  if (shareRoom(state, lane, arrival.tenant) < 0) return [];
  const rooms = shareRoomOnNodes(state, lane, arrival.tenant);
  return state.tasks
    .filter(({ held }) => held !== null && nodes.has(held.node) && (rooms.get(held.node) ?? 0) >= 0)
    .filter((task) => task.state === "running")
    .filter((task) => task.preemptionsLeft > 0 && !isCritical(task.priority))
    .filter((task) => task.tenant === arrival.tenant && task.lane === arrival.lane)
    .filter((task) => !ofSameAgent || isSameAgent(task, arrival))
    .sort((a, b) => b.priority - a.priority || (b.held?.token ?? 0) - (a.held?.token ?? 0));
}

export function giveWay(state: OracleState, task: OracleTask, to: OracleTask): number {
  const token = task.held?.token ?? 0;
  const error = preemptionError(to.id);
  endAttempt(state, task, "preempted", error);
  task.preemptionsLeft -= 1;
  task.rank = FRONT_RANK;
  askForKey(state, task);
  addEvent(state, "task.preempted", task, { attempt: task.attempts.length, error });
  return token;
}
