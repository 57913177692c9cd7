import { isCritical } from "../../../model/priority.ts";
import { NOT_POLLING_MS } from "../../../model/worker.ts";
import { isAloneKind } from "../../alone-queue.ts";
import { canWorkerRun, isForWorkers } from "../connection/abilities.ts";
import {
  agentQueueOf,
  byRank,
  isReady,
  type OracleLane,
  type OracleState,
  type OracleTask,
  type OracleWorker,
  signal,
} from "../state.ts";
import { giveWay, owe } from "../tasks/preempt-tasks.ts";
import { agentRoom, inflightOfLane, shareRoom } from "../tasks/room.ts";
import { settleMoves } from "../tasks/settle-moves.ts";
import { heldBy } from "./workers.ts";

export function preemptForWorkers(state: OracleState, { limit }: { limit: number }): { preempted: number } {
  const lanes = [...state.lanes.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  const criticals = lanes
    .flatMap((lane) => criticalsOf(state, lane).map((task) => ({ lane, task })))
    .slice(0, limit);
  const reserved: string[] = [];
  const tokens: number[] = [];
  const startable = new Map<string, number>();
  for (const { lane, task } of criticals) {
    if (isBeyondAgent(state, lane, task) || shareRoom(state, lane, task.tenant) < 0) continue;
    const able = ableWorkers(state, task);
    const free = able.find(
      ({ id, slots }) => slots - heldBy(state, id).length - reserved.filter((each) => each === id).length > 0,
    );
    const laneFree =
      startable.get(lane.name) ?? (lane.total ?? Number.POSITIVE_INFINITY) - inflightOfLane(state, lane);
    if (free !== undefined && laneFree > 0) {
      reserved.push(free.id);
      startable.set(lane.name, laneFree - 1);
      continue;
    }
    const victim = victimFor(state, task, able);
    if (victim?.held == null) continue;
    reserved.push(victim.held.node);
    tokens.push(giveWay(state, victim, task));
    owe(state, lane, task.tenant);
    startable.set(lane.name, laneFree);
  }
  settleMoves(state);
  state.newCriticalTasks = [];
  if (tokens.length > 0)
    signal(state, { kind: "events" }, { kind: "fenced", tokens, reason: "preempted" }, { kind: "work" });
  return { preempted: tokens.length };
}

/** The ready critical tasks of a lane that workers run, beside others. */
function criticalsOf(state: OracleState, lane: OracleLane): OracleTask[] {
  return state.tasks
    .filter((task) => task.lane === lane.name && isReady(task) && isCritical(task.rank))
    .filter((task) => !state.tenants.get(task.tenant)?.disabled)
    .filter((task) => {
      const agentQueue = agentQueueOf(state, task);
      return !isAloneKind(agentQueue.kind) && isForWorkers(state, agentQueue);
    })
    .sort(byRank);
}

/** Whether the critical tasks before it in its agent queue use up what its agent may still run. */
function isBeyondAgent(state: OracleState, lane: OracleLane, task: OracleTask): boolean {
  const own = criticalsOf(state, lane).filter(
    (other) => agentQueueOf(state, other) === agentQueueOf(state, task),
  );
  return own.indexOf(task) >= agentRoom(state, lane, task);
}

function ableWorkers(state: OracleState, task: OracleTask): OracleWorker[] {
  return [...state.workers.values()]
    .filter(({ lost, draining }) => !lost && !draining)
    .filter((worker) => canWorkerRun(state, worker, agentQueueOf(state, task)))
    .filter(
      ({ id, slots, registeredAt, polledAt }) =>
        heldBy(state, id).length >= slots ||
        Math.max(registeredAt, polledAt ?? 0) >= state.clock.now() - NOT_POLLING_MS,
    )
    .sort((a, b) => (a.id < b.id ? -1 : 1));
}

function victimFor(
  state: OracleState,
  critical: OracleTask,
  able: readonly OracleWorker[],
): OracleTask | undefined {
  return state.tasks
    .filter(({ held, state: own }) => own === "running" && able.some(({ id }) => id === held?.node))
    .filter((task) => task.preemptionsLeft > 0 && !isCritical(task.priority))
    .filter((task) => task.tenant === critical.tenant && task.lane === critical.lane)
    .sort((a, b) => b.priority - a.priority || (b.held?.token ?? 0) - (a.held?.token ?? 0))[0];
}
