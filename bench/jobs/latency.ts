import { memoryStorage, type NewStorage, postgresStorage, sqliteStorage } from "../empty-storage.ts";
import { type Figure, figure, percentile } from "../figure.ts";
import type { Setting } from "../job.ts";
import { measureStartLatency } from "../start-latency.ts";

export function latencyInMemory(setting: Setting): Promise<Figure[]> {
  return latency(memoryStorage, setting, { storage: "in memory", medianBelowMs: 0.6 });
}

export function latencyOnSqlite(setting: Setting): Promise<Figure[]> {
  return latency(sqliteStorage(setting), setting, { storage: "SQLite on disk", medianBelowMs: 1.5 });
}

export function latencyOnPostgres(setting: Setting): Promise<Figure[]> {
  return latency(postgresStorage(setting), setting, { storage: "PostgreSQL", medianBelowMs: 3 });
}

/** How long a task that comes alone waits for its start. */
async function latency(
  newStorage: NewStorage,
  { turns, sizes }: Setting,
  { storage, medianBelowMs }: { storage: string; medianBelowMs: number },
): Promise<Figure[]> {
  const runs: number[][] = [];
  for (let turn = 1; turn <= turns; turn++) {
    const samples = await measureStartLatency(newStorage, { samples: sizes.samples });
    runs.push(samples);
    console.error(`  turn ${turn}: ${storage} p50 ${percentile(samples, 50).toFixed(2)} ms`);
  }
  const at = (percent: number) => runs.map((samples) => percentile(samples, percent));
  return [
    figure(`submit to start, ${storage}, p50`, "ms", at(50), { below: medianBelowMs }),
    figure(`submit to start, ${storage}, p99`, "ms", at(99)),
  ];
}
