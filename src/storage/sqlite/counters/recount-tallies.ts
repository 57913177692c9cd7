import type { RecountSlices } from "./recount-slices.ts";

/** Compares the number of tasks per tenant and state. */
export async function checkTallies(recount: RecountSlices): Promise<void> {
  const { counts } = recount.census;
  recount.catchUp();
  const stored = recount.db
    .prepare<{ tenant: string; state: string; tasks: number }>("select tenant, state, tasks from tally")
    .all();
  const known = new Set(stored.map(tallyKey));
  for (const { tenant, state, tasks } of stored) {
    recount.compare(`tally ${tenant} ${state}`, tasks, counts.inState(tenant, state));
  }
  for (const row of counts.tally()) {
    if (!known.has(tallyKey(row))) recount.compare(`tally ${row.tenant} ${row.state}`, 0, row.tasks);
  }
  await recount.sliceDone(stored.length);
}

function tallyKey({ tenant, state }: { tenant: string; state: string }): string {
  return JSON.stringify([tenant, state]);
}
