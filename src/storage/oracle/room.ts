import { agentKey, isSameAgent, type OracleLane, type OracleState } from "./state.ts";

/** How many more tasks of an agent its limits allow in a lane: the lane's for each agent, and its own over all lanes. */
export function agentRoom(
  state: OracleState,
  lane: OracleLane,
  agent: { tenant: string; agent: string },
): number {
  const running = state.tasks.filter((task) => task.held !== null && isSameAgent(task, agent));
  const inLane = running.filter((task) => task.lane === lane.name);
  const agentMax = state.agentLimits.get(agentKey(agent)) ?? Number.POSITIVE_INFINITY;
  const perAgent = lane.perAgent ?? Number.POSITIVE_INFINITY;
  return Math.max(Math.min(perAgent - inLane.length, agentMax - running.length), 0);
}

/** How many more tasks of a tenant may run, over all lanes: none of one that is disabled. */
export function tenantRoom(state: OracleState, id: string): number {
  const tenant = state.tenants.get(id);
  if (tenant?.disabled) return 0;
  const max = tenant?.limits.maxInflight ?? Number.POSITIVE_INFINITY;
  return Math.max(max - inflightOfTenant(state, id), 0);
}

export function inflightOfTenant(state: OracleState, id: string): number {
  return state.tasks.filter((task) => task.held !== null && task.tenant === id).length;
}

/** Whether one more task may run in a lane, over all nodes. */
export function hasRoom(state: OracleState, lane: OracleLane): boolean {
  return lane.total === null || inflightOfLane(state, lane) < lane.total;
}

function inflightOfLane(state: OracleState, { name }: OracleLane): number {
  return state.tasks.filter((task) => task.held !== null && task.lane === name).length;
}

/**
 * How many slots of a lane are free on each node that would fill one that becomes free. One that has taken its slots
 * back, or more than it has left, would not.
 */
export function serving(state: OracleState, lane: OracleLane): ReadonlyMap<string, number> {
  const nodes = [...state.nodes.values()].filter(({ dead }) => !dead);
  const free = nodes.map(({ node, slots }) => {
    const held = state.tasks.filter((task) => task.lane === lane.name && task.held?.node === node).length;
    return [node, (slots[lane.name] ?? 0) - held] as const;
  });
  return new Map(free.filter(([, left]) => left >= 0));
}

/** Whether a lane is at a limit: its total, or the slots of every node that has said how many it has. */
export function isFull(state: OracleState, lane: OracleLane): boolean {
  if (!hasRoom(state, lane)) return true;
  const isServed = [...state.nodes.values()].some(
    ({ dead, slots }) => !dead && slots[lane.name] !== undefined,
  );
  return isServed && ![...serving(state, lane).values()].some((free) => free > 0);
}
