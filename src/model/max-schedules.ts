import { DEFAULT_TENANT } from "./task.ts";

/** How many schedules a tenant may have that are active or paused, unless its limits say otherwise. */
export const DEFAULT_MAX_SCHEDULES = 1_000;

/** How many schedules a tenant may have that are active or paused; null: any number. The default tenant is the owner's own. */
export function maxSchedulesOf(tenant: {
  readonly id: string;
  readonly limits: { readonly maxSchedules: number | null };
}): number | null {
  const { maxSchedules } = tenant.limits;
  return tenant.id === DEFAULT_TENANT ? maxSchedules : (maxSchedules ?? DEFAULT_MAX_SCHEDULES);
}
