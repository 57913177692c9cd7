import { DEFAULT_TENANT } from "./task.ts";

/** How many schedules a tenant may have that are active or paused, unless its limits say otherwise. */
export const DEFAULT_MAX_SCHEDULES = 1_000;
/** How many sessions with settings a tenant may have, unless its limits say otherwise: they stay until they are deleted. */
export const DEFAULT_MAX_SESSIONS = 10_000;
/** How many agents a tenant may store, unless its limits say otherwise: all nodes keep them in memory. */
export const DEFAULT_MAX_AGENTS = 1_000;
/** The most that any tenant may store, and what `default` may, which is the owner's own. */
export const AGENTS_MAX = 10_000;

interface Bounded<Limit extends string> {
  readonly id: string;
  readonly limits: { readonly [Name in Limit]: number | null };
}

/** How many schedules a tenant may have that are active or paused; null: any number. */
export function maxSchedulesOf({ id, limits: { maxSchedules } }: Bounded<"maxSchedules">): number | null {
  return id === DEFAULT_TENANT ? maxSchedules : (maxSchedules ?? DEFAULT_MAX_SCHEDULES);
}

/** How many sessions with settings a tenant may have; null: any number. */
export function maxSessionsOf({ id, limits: { maxSessions } }: Bounded<"maxSessions">): number | null {
  return id === DEFAULT_TENANT ? maxSessions : (maxSessions ?? DEFAULT_MAX_SESSIONS);
}

/** How many agents a tenant may store. */
export function maxAgentsOf({ id, limits: { maxAgents } }: Bounded<"maxAgents">): number {
  return maxAgents ?? (id === DEFAULT_TENANT ? AGENTS_MAX : DEFAULT_MAX_AGENTS);
}
