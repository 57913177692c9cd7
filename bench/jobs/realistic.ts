import { postgresStorage } from "../empty-storage.ts";
import { type Figure, figure, percentile } from "../figure.ts";
import type { Setting } from "../job.ts";
import { measureRealistic, type RealisticRun } from "../nodes/realistic.ts";

const NODES = [1, 4] as const;

/** How much of what its slots could run a PostgreSQL runs while tasks are submitted besides, on one node and on four. */
export async function realisticJob({ postgresUrl, sizes, turns }: Setting): Promise<Figure[]> {
  const newStorage = postgresStorage({ postgresUrl });
  const runs = new Map<number, RealisticRun[]>(NODES.map((nodes) => [nodes, []]));
  for (let turn = 1; turn <= turns; turn += 1) {
    for (const nodes of NODES) {
      const run = await measureRealistic(newStorage, { nodes, seconds: sizes.realisticSec });
      runs.get(nodes)?.push(run);
      const p99 = percentile(run.submitMs, 99).toFixed(1);
      console.error(`  turn ${turn}: ${nodes} nodes ${Math.round(run.share * 100)} %, submit p99 ${p99} ms`);
    }
  }
  return NODES.flatMap((nodes) => {
    const own = runs.get(nodes) ?? [];
    const of = (what: string) => `${nodes === 1 ? "1 node" : `${nodes} nodes`}: ${what}`;
    const submits = (percent: number) => own.map(({ submitMs }) => percentile(submitMs, percent));
    return [
      figure(
        of("share of what the slots could run"),
        "share",
        own.map(({ share }) => share),
        { atLeast: 0.95 },
      ),
      figure(of("submit, p50"), "ms", submits(50)),
      figure(of("submit, p99"), "ms", submits(99), { below: 60 }),
    ];
  });
}
