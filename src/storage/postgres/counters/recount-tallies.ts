import type { TaskCounts } from "../../task-counts.ts";
import type { FaultRow } from "./recount.ts";
import type { RecountSlices } from "./recount-slices.ts";

/** With more tasks than this, tallies are not counted in one statement. */
const EXACT_TALLY_MAX = 2_000_000;

/** Compares the number of tasks per tenant and state with `counts`. `before`: the tallies before the tasks were counted. */
export async function checkTallies(
  recount: RecountSlices,
  counts: TaskCounts,
  before: TallyReading,
): Promise<void> {
  const after = await readTallies(recount);
  const stored = new Map(after.tally.map((row) => [tallyKey(row), row]));
  const all = [...stored.values()];
  for (const counted of counts.tally())
    if (!stored.has(tallyKey(counted))) all.push({ ...counted, tasks: 0 });
  const suspects = all.filter(({ tenant, state, tasks }) => tasks !== counts.inState(tenant, state));
  if (suspects.length === 0) return;
  if (recount.rowsTotal <= EXACT_TALLY_MAX) {
    const rows = suspects.map(({ tenant, state }) => ({ tenant, state }));
    recount.report(await recount.query<FaultRow>(RECOUNT_TALLIES, [JSON.stringify(rows)]));
    return;
  }
  // Too many tasks to count in one snapshot. A tally is wrong if it is off by more than can have changed meanwhile.
  const slack = Math.max(after.lastEvent - before.lastEvent, 0) * 2;
  const earlier = new Map(before.tally.map((row) => [tallyKey(row), row.tasks]));
  for (const row of suspects) {
    const { tenant, state, tasks } = row;
    const counted = counts.inState(tenant, state);
    const then = earlier.get(tallyKey(row)) ?? 0;
    if (counted < Math.min(then, tasks) - slack || counted > Math.max(then, tasks) + slack)
      recount.compare(`tally ${tenant} ${state}`, tasks, counted);
  }
}

export async function readTallies(recount: RecountSlices): Promise<TallyReading> {
  const rows = await recount.query<{ tenant: string; state: string; tasks: string; last_event: string }>(
    `select tenant, state, tasks, (select last_value from event_seq) as last_event from tally`,
    [],
  );
  return {
    tally: rows.map(({ tenant, state, tasks }) => ({ tenant, state, tasks: Number(tasks) })),
    lastEvent: Number(rows[0]?.last_event ?? 0),
  };
}

interface TallyRow {
  readonly tenant: string;
  readonly state: string;
  readonly tasks: number;
}

interface TallyReading {
  readonly tally: readonly TallyRow[];
  readonly lastEvent: number;
}

function tallyKey({ tenant, state }: { tenant: string; state: string }): string {
  return JSON.stringify([tenant, state]);
}

const RECOUNT_TALLIES = `
select 'tally ' || g.tenant || ' ' || g.state as counter, coalesce(a.tasks, 0) as stored, coalesce(c.tasks, 0) as counted
  from json_to_recordset($1) g(tenant text, state text)
  left join tally a on a.tenant = g.tenant and a.state = g.state
  left join (select tenant, resting_state, count(*) as tasks from task group by tenant, resting_state) c
         on c.tenant = g.tenant and c.resting_state = g.state
 where coalesce(a.tasks, 0) <> coalesce(c.tasks, 0)`;
