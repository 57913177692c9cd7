/** The tenant of callers without keys, for local use. It always exists. */
export const DEFAULT_TENANT = "default";

/** The default limit of active and paused schedules of a tenant. */
export const DEFAULT_MAX_SCHEDULES = 1_000;
/** The default limit of sessions with settings of a tenant: they stay until they are deleted. */
export const DEFAULT_MAX_SESSIONS = 10_000;
/** The default limit of stored agents of a tenant: all nodes keep them in memory. */
export const DEFAULT_MAX_AGENTS = 1_000;
/** The most agents that any tenant may store, and the default of the tenant `default`. */
export const AGENTS_MAX = 10_000;

interface Bounded<Limit extends string> {
  readonly id: string;
  readonly limits: { readonly [Name in Limit]: number | null };
}

/** How many active and paused schedules a tenant may have; null: no limit. */
export function maxSchedulesOf({ id, limits: { maxSchedules } }: Bounded<"maxSchedules">): number | null {
  return id === DEFAULT_TENANT ? maxSchedules : (maxSchedules ?? DEFAULT_MAX_SCHEDULES);
}

/** How many sessions with settings a tenant may have; null: no limit. */
export function maxSessionsOf({ id, limits: { maxSessions } }: Bounded<"maxSessions">): number | null {
  return id === DEFAULT_TENANT ? maxSessions : (maxSessions ?? DEFAULT_MAX_SESSIONS);
}

/** How many agents a tenant may store. */
export function maxAgentsOf({ id, limits: { maxAgents } }: Bounded<"maxAgents">): number {
  return maxAgents ?? (id === DEFAULT_TENANT ? AGENTS_MAX : DEFAULT_MAX_AGENTS);
}
