import { CONSECUTIVE_CRITICAL_MAX, isCritical } from "../../../model/priority.ts";
import { isAloneKind } from "../../alone-queue.ts";
import type { Abilities } from "../../storage.ts";
import { canExecute } from "../connection/abilities.ts";
import {
  byRank,
  isOfAgentQueue,
  isReady,
  type OracleAgentQueue,
  type OracleLane,
  type OracleState,
  type OracleTask,
  type OracleTenantQueue,
} from "../state.ts";
import { nextSharer, sharersOf } from "../tenants/share-out.ts";
import { agentRoom, shareRoom, tenantRoom } from "./room.ts";

interface Candidate {
  readonly agentQueue: OracleAgentQueue;
  /** The first of its queued tasks. */
  readonly head: OracleTask;
  readonly inflight: number;
}

export interface Chosen extends Candidate {
  readonly tenantQueue: OracleTenantQueue;
}

/**
 * The next task to start in this lane, with its tenant, which uses up one pre-emption credit if it has any. Undefined if no task
 * may start. `isExecutable`: which agent queues count; `leftFor`: how many slots of the lane a tenant may still take.
 */
export function chooseTask(
  state: OracleState,
  lane: OracleLane,
  isExecutable: (agentQueue: OracleAgentQueue) => boolean,
  leftFor: (tenant: string) => number,
): Chosen | undefined {
  const chosen = peekTask(state, lane, isExecutable, leftFor);
  if (chosen === undefined) return undefined;
  const { tenantQueue, goesAhead } = chosen;
  if (lane.strategy === "fair-fifo")
    tenantQueue.consecutiveCritical = goesAhead ? tenantQueue.consecutiveCritical + 1 : 0;
  tenantQueue.preemptionCredit = Math.max(tenantQueue.preemptionCredit - 1, 0);
  return chosen;
}

/** The same, and changes nothing. `goesAhead`: it is critical and goes ahead of fairness. */
export function peekTask(
  state: OracleState,
  lane: OracleLane,
  isExecutable: (agentQueue: OracleAgentQueue) => boolean,
  leftFor: (tenant: string) => number,
): (Chosen & { readonly goesAhead: boolean }) | undefined {
  const tenantQueue = nextSharer(sharersOf(state, lane, isExecutable, leftFor))?.tenantQueue;
  if (tenantQueue === undefined) return undefined;
  const candidates = state.agentQueues
    .filter(
      (agentQueue) =>
        agentQueue.lane === lane.name && agentQueue.tenant === tenantQueue.tenant && isExecutable(agentQueue),
    )
    .map((agentQueue) => startable(state, lane, agentQueue))
    .filter((candidate) => candidate !== undefined);
  const { chosen, goesAhead } = chooseOfTenant(lane, tenantQueue, candidates);
  if (chosen === undefined) throw new Error("Whose turn it is has something to start.");
  return { ...chosen, tenantQueue, goesAhead };
}

/** The next task to start on a node that runs nothing else, of those that run alone. */
export function chooseAlone(
  state: OracleState,
  lanes: readonly OracleLane[],
  abilities: Abilities | null,
): Chosen | undefined {
  const candidates = lanes.flatMap((lane) =>
    state.agentQueues
      .filter(({ lane: name, kind }) => name === lane.name && isAloneKind(kind))
      .filter(
        (agentQueue) =>
          canExecute(state, abilities, agentQueue) &&
          Math.min(tenantRoom(state, agentQueue.tenant), shareRoom(state, lane, agentQueue.tenant)) > 0,
      )
      .flatMap((agentQueue) => startable(state, lane, agentQueue) ?? []),
  );
  const order = (agentQueue: OracleAgentQueue) => state.agentQueues.indexOf(agentQueue);
  const chosen = first(
    candidates,
    (a, b) => a.agentQueue.lastServed - b.agentQueue.lastServed || order(a.agentQueue) - order(b.agentQueue),
  );
  const tenantQueue = state.tenantQueues.find(
    ({ lane, tenant }) => lane === chosen?.agentQueue.lane && tenant === chosen.agentQueue.tenant,
  );
  if (chosen === undefined || tenantQueue === undefined) return undefined;
  tenantQueue.preemptionCredit = Math.max(tenantQueue.preemptionCredit - 1, 0);
  return { ...chosen, tenantQueue };
}

function chooseOfTenant(
  lane: OracleLane,
  tenantQueue: OracleTenantQueue,
  candidates: readonly Candidate[],
): { chosen: Candidate | undefined; goesAhead: boolean } {
  if (lane.strategy === "priority-fifo") return { chosen: first(candidates, byHead), goesAhead: false };
  const criticals = candidates.filter(({ head }) => isCritical(head.rank));
  const goesAhead = criticals.length > 0 && tenantQueue.consecutiveCritical < CONSECUTIVE_CRITICAL_MAX;
  return { chosen: goesAhead ? first(criticals, byHead) : first(candidates, byFairness), goesAhead };
}

/** An agent queue may start its first task unless its limit in this lane, or its agent's over all lanes, is reached. */
function startable(
  state: OracleState,
  lane: OracleLane,
  agentQueue: OracleAgentQueue,
): Candidate | undefined {
  const ofAgentQueue = state.tasks.filter((task) => isOfAgentQueue(task, agentQueue));
  const head = first(ofAgentQueue.filter(isReady), byRank);
  if (head === undefined || agentRoom(state, lane, agentQueue) === 0) return undefined;
  return { agentQueue, head, inflight: ofAgentQueue.filter((task) => task.held).length };
}

function byHead(a: Candidate, b: Candidate): number {
  return byRank(a.head, b.head);
}

function byFairness(a: Candidate, b: Candidate): number {
  return a.inflight - b.inflight || a.agentQueue.lastServed - b.agentQueue.lastServed;
}

/** The smallest; of equals the first, which among agent queues is the oldest. */
function first<T>(items: readonly T[], compare: (a: T, b: T) => number): T | undefined {
  return [...items].sort(compare)[0];
}
