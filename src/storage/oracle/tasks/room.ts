import { type AgentName, agentKey } from "../../../model/agent.ts";
import type { TenantSlots } from "../../storage.ts";
import { isSameAgent, type OracleLane, type OracleState } from "../state.ts";

/** How many more tasks of an agent may run in a lane, by the lane's limit for each agent and the agent's own over all lanes. */
export function agentRoom(state: OracleState, lane: OracleLane, agent: AgentName): number {
  const running = state.tasks.filter((task) => task.held !== null && isSameAgent(task, agent));
  const inLane = running.filter((task) => task.lane === lane.name);
  const agentMax = state.agentLimits.get(agentKey(agent)) ?? Number.POSITIVE_INFINITY;
  const perAgent = lane.perAgent ?? Number.POSITIVE_INFINITY;
  return Math.max(Math.min(perAgent - inLane.length, agentMax - running.length), 0);
}

/** How many more tasks of a tenant may run, over all lanes: none if it is disabled. */
export function tenantRoom(state: OracleState, id: string): number {
  const tenant = state.tenants.get(id);
  if (tenant?.disabled) return 0;
  const max = tenant?.limits.maxInflight ?? Number.POSITIVE_INFINITY;
  return Math.max(max - inflightOfTenant(state, id), 0);
}

export function inflightOfTenant(state: OracleState, id: string, lane?: OracleLane): number {
  const inflight = state.tasks.filter((task) => task.held !== null && task.tenant === id);
  return inflight.filter((task) => lane === undefined || task.lane === lane.name).length;
}

/** Whether tenants are limited to their shares of lanes. */
export function hasSecondEnabledTenant(state: OracleState): boolean {
  return [...state.tenants.values()].filter(({ disabled }) => !disabled).length > 1;
}

/** How many more slots of a lane its share leaves a tenant, over all nodes; negative if it holds more. */
export function shareRoom(state: OracleState, lane: OracleLane, tenant: string): number {
  if (lane.perTenant === null || !hasSecondEnabledTenant(state)) return Number.POSITIVE_INFINITY;
  return lane.perTenant - inflightOfTenant(state, tenant, lane);
}

/** The same on the claiming node, by what the node passes in. */
export function leftOnNode(state: OracleState, perTenant: TenantSlots | undefined, tenant: string): number {
  if (perTenant === undefined || !hasSecondEnabledTenant(state)) return Number.POSITIVE_INFINITY;
  return perTenant.left.get(tenant) ?? perTenant.max;
}

/** The same on each node that serves a lane, by what the storage knows of the node. */
export function shareRoomOnNodes(
  state: OracleState,
  lane: OracleLane,
  tenant: string,
): ReadonlyMap<string, number> {
  const isShared = hasSecondEnabledTenant(state);
  return new Map(
    [...serving(state, lane).keys()].map((node) => {
      const max = state.nodes.get(node)?.perTenant[lane.name];
      if (max === undefined || !isShared) return [node, Number.POSITIVE_INFINITY];
      const held = state.tasks.filter(
        (task) => task.lane === lane.name && task.held?.node === node && task.tenant === tenant,
      );
      return [node, max - held.length];
    }),
  );
}

/** How many of the free slots on these nodes a tenant may take. */
export function freeForTenant(
  state: OracleState,
  lane: OracleLane,
  nodes: ReadonlyMap<string, number>,
  tenant: string,
): number {
  const rooms = shareRoomOnNodes(state, lane, tenant);
  const free = [...nodes].map(([node, left]) => Math.max(Math.min(left, rooms.get(node) ?? 0), 0));
  return free.reduce((sum, left) => sum + left, 0);
}

/** Whether one more task may run in a lane, over all nodes. */
export function hasRoom(state: OracleState, lane: OracleLane): boolean {
  return lane.total === null || inflightOfLane(state, lane) < lane.total;
}

export function inflightOfLane(state: OracleState, { name }: OracleLane): number {
  return state.tasks.filter((task) => task.held !== null && task.lane === name).length;
}

/**
 * The free slots of a lane on each node that would use a slot that becomes free. A node that has withdrawn its slots, or runs
 * more tasks than it has slots, would not.
 */
export function serving(state: OracleState, lane: OracleLane): ReadonlyMap<string, number> {
  const nodes = [...state.nodes.values()].filter(({ dead }) => !dead);
  const free = nodes.map(({ node, slots }) => {
    const held = state.tasks.filter((task) => task.lane === lane.name && task.held?.node === node);
    const running = held.filter((task) => task.state === "running");
    // Tasks that are held ahead have no slot yet.
    const own = slots[lane.name] ?? 0;
    return [node, own - Math.min(held.length, Math.max(own, running.length))] as const;
  });
  return new Map(free.filter(([, left]) => left >= 0));
}

/**
 * Whether a lane is full for a tenant: by its total, by the tenant's share, or by the slots of all nodes that have registered
 * slots for it.
 */
export function isFull(state: OracleState, lane: OracleLane, tenant: string): boolean {
  if (!hasRoom(state, lane) || shareRoom(state, lane, tenant) <= 0) return true;
  const isServed = [...state.nodes.values()].some(
    ({ dead, slots }) => !dead && slots[lane.name] !== undefined,
  );
  return isServed && freeForTenant(state, lane, serving(state, lane), tenant) === 0;
}
