import type { TaskCounts } from "../../task-counts.ts";
import { PARKED_TURN } from "./parked-turn.ts";
import type { FaultRow } from "./recount.ts";
import type { RecountSlices } from "./recount-slices.ts";

/** Compares the counters of batches with `counts`. */
export async function checkBatches(recount: RecountSlices, counts: TaskCounts): Promise<void> {
  for (let after = "", more = true; more; ) {
    const page = await recount.query<BatchRow>(READ_BATCHES, [after, recount.counters]);
    const suspects = page.filter((batch) => !isAsCounted(batch, counts)).map(({ id }) => id);
    if (suspects.length > 0) recount.report(await recount.query<FaultRow>(RECOUNT_BATCHES, [suspects]));
    after = page.at(-1)?.id ?? after;
    more = page.length === recount.counters;
    await recount.sliceDone(page.length);
  }
}

function isAsCounted({ id, active, open, parallelism, completed }: BatchRow, counts: TaskCounts): boolean {
  const counted = counts.ofBatch(id);
  const hasRoom = parallelism !== null && active < parallelism;
  return (
    active === counted.queued &&
    open === counted.open &&
    !(hasRoom && counted.parked > 0) &&
    (completed || open > 0)
  );
}

interface BatchRow {
  readonly id: string;
  readonly active: number;
  readonly open: number;
  readonly parallelism: number | null;
  readonly completed: boolean;
}

const READ_BATCHES = `
select id, active, open, parallelism, completed_at is not null as completed
  from batch where id > $1 order by id limit $2`;

const RECOUNT_BATCHES = `
select 'batch ' || b.id || ' ' || c.name as counter, c.stored, c.counted
  from batch b
  left join (select t.batch, count(*) filter (where t.resting_state = 'queued' and t.parked is null and u.place is null) as active,
                    count(*) filter (where t.completed_at is null) as open,
                    count(*) filter (where t.parked = 'batch') as parked
               from task t ${PARKED_TURN}
              where t.batch = any ($1) group by t.batch) t on t.batch = b.id
 cross join lateral (values
   ('active', b.active, coalesce(t.active, 0)),
   ('open', b.open, coalesce(t.open, 0)),
   ('parked beside room', case when b.active < b.parallelism then t.parked else 0 end, 0),
   ('ended and not completed', case when b.completed_at is null and t.open = 0 then 1 else 0 end, 0)) c(name, stored, counted)
 where b.id = any ($1) and c.stored <> c.counted`;
