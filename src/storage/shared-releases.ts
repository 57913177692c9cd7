/**
 * How many release rows one round looks at, the oldest first. By default a tenant has no more tasks that wait, so the rows of one
 * tenant do not hide those of others.
 */
export const RELEASES_LOOKED_AT = 1_000;

/**
 * The release rows that one round processes: by tenant, the one whose first row is the oldest first, and in order within a tenant.
 * `share`: how many dependants of each tenant the round may reach.
 */
export function shareReleases<Release extends { readonly tenant: string }>(
  oldestFirst: readonly Release[],
  limit: number,
): { readonly share: number; readonly ofTenants: readonly (readonly Release[])[] } {
  const ofTenants = [...Map.groupBy(oldestFirst, ({ tenant }) => tenant).values()];
  return { share: Math.max(1, Math.floor(limit / Math.max(ofTenants.length, 1))), ofTenants };
}
