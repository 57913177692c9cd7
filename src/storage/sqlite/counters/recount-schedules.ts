import type { RecountSlices } from "./recount-slices.ts";

export async function checkSchedules(recount: RecountSlices): Promise<void> {
  await recount.eachPage<{ id: number; open_runs: number; counted: number }>(
    recount.counters,
    {
      sql: `select id, open_runs,
                   (select count(*) from run r where r.schedule = s.id and r.status = 'running') as counted
              from schedule s where id > ? order by id limit +?`,
      first: [-1],
      keyOf: ({ id }) => [id],
    },
    (page) => {
      for (const { id, open_runs, counted } of page) {
        recount.compare(`schedule ${id} open_runs`, open_runs, counted);
      }
    },
  );
}
