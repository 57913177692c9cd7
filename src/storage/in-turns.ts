/**
 * Rows of several tenants, one tenant after the other: the first row of each, then the second of each, and so on. The first
 * tenant is the one that follows `after` by id. The rows of one tenant keep their order.
 */
export function inTurns<Row extends { readonly tenant: string }>(rows: readonly Row[], after: string): Row[] {
  const byTenant = new Map<string, Row[]>();
  for (const row of rows) {
    const own = byTenant.get(row.tenant);
    if (own === undefined) byTenant.set(row.tenant, [row]);
    else own.push(row);
  }
  const ids = [...byTenant.keys()].sort();
  const turns = [...ids.filter((id) => id > after), ...ids.filter((id) => id <= after)];
  const rounds = Math.max(0, ...[...byTenant.values()].map(({ length }) => length));
  return Array.from({ length: rounds }, (_, round) =>
    turns.flatMap((id) => byTenant.get(id)?.slice(round, round + 1) ?? []),
  ).flat();
}
