import type { RecountSlices } from "./recount-slices.ts";

export async function checkBatches(recount: RecountSlices): Promise<void> {
  const { counts } = recount.census;
  await recount.eachPage<{ id: string; active: number; open: number; parallelism: number | null }>(
    recount.counters,
    {
      sql: "select id, active, open, parallelism from batch where id > ? order by id limit +?",
      first: [""],
      keyOf: ({ id }) => [id],
    },
    (page) => {
      for (const { id, active, open, parallelism } of page) {
        const counted = counts.ofBatch(id);
        recount.compare(`batch ${id} active`, active, parallelism === null ? 0 : counted.queued);
        recount.compare(`batch ${id} open`, open, counted.open);
      }
    },
  );
}
