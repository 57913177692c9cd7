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
