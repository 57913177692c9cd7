import {
  isOfAgentQueue,
  isReady,
  type OracleAgentQueue,
  type OracleLane,
  type OracleState,
  type OracleTenantQueue,
} from "../state.ts";
import { agentRoom, shareRoom, tenantRoom } from "../tasks/room.ts";

/** A tenant that takes part when the slots of a lane are shared out. */
export interface Sharer {
  readonly tenantQueue: OracleTenantQueue;
  inflight: number;
  lastServed: number;
  preemptionCredit: number;
  /** How many of its tasks could start if there were no other tenants. */
  left: number;
}

/** All tenants of a lane, the oldest first. `counts`: which agent queues count; `leftFor`: how many slots a tenant may take. */
export function sharersOf(
  state: OracleState,
  lane: OracleLane,
  counts: (agentQueue: OracleAgentQueue) => boolean,
  leftFor: (tenant: string) => number,
): Sharer[] {
  const tenantQueues = state.tenantQueues.filter((tenantQueue) => tenantQueue.lane === lane.name);
  return tenantQueues.map((tenantQueue) => ({
    tenantQueue,
    inflight: state.tasks.filter(
      (task) => task.held !== null && task.lane === lane.name && task.tenant === tenantQueue.tenant,
    ).length,
    lastServed: tenantQueue.lastServed,
    preemptionCredit: tenantQueue.preemptionCredit,
    left: Math.min(
      supplyOf(state, lane, tenantQueue.tenant, counts),
      tenantRoom(state, tenantQueue.tenant),
      shareRoom(state, lane, tenantQueue.tenant),
      leftFor(tenantQueue.tenant),
    ),
  }));
}

/**
 * The tenant whose turn it is: one with pre-emption credit, else the one with the fewest tasks in flight, and of these the one
 * served longest ago.
 */
export function nextSharer(sharers: readonly Sharer[]): Sharer | undefined {
  return sharers
    .filter(({ left }) => left > 0)
    .sort(
      (a, b) =>
        Number(b.preemptionCredit > 0) - Number(a.preemptionCredit > 0) ||
        a.inflight - b.inflight ||
        a.lastServed - b.lastServed,
    )[0];
}

/** How many of the next `slots` starts in a lane each tenant gets; see `sharersOf`. */
export function shareOut(
  state: OracleState,
  lane: OracleLane,
  slots: number,
  leftFor: (tenant: string) => number,
): Map<string, number> {
  const sharers = sharersOf(state, lane, ({ standing }) => standing === "executable", leftFor);
  const shares = new Map<string, number>();
  for (let turn = 1; turn <= slots; turn += 1) {
    const next = nextSharer(sharers);
    if (next === undefined) break;
    next.inflight += 1;
    next.lastServed = state.lastEventSeq + turn;
    next.preemptionCredit = Math.max(next.preemptionCredit - 1, 0);
    next.left -= 1;
    shares.set(next.tenantQueue.tenant, (shares.get(next.tenantQueue.tenant) ?? 0) + 1);
  }
  return shares;
}

/** How many tasks of a tenant its agents could start in a lane. */
function supplyOf(
  state: OracleState,
  lane: OracleLane,
  tenant: string,
  counts: (agentQueue: OracleAgentQueue) => boolean,
): number {
  return state.agentQueues
    .filter(
      (agentQueue) => agentQueue.lane === lane.name && agentQueue.tenant === tenant && counts(agentQueue),
    )
    .map((agentQueue) => {
      const ready = state.tasks.filter((task) => isReady(task) && isOfAgentQueue(task, agentQueue));
      return Math.min(ready.length, agentRoom(state, lane, agentQueue));
    })
    .reduce((sum, room) => sum + room, 0);
}
