import { type NewStorage, postgresStorage, sqliteStorage, withStorage } from "../empty-storage.ts";
import { type Figure, figure } from "../figure.ts";
import type { Setting } from "../job.ts";
import { loadSchedules } from "../load-schedules.ts";
import { openRota } from "../workload.ts";

/** From the first schedule to the moment at which all are due. */
const AHEAD_MS = 6_000;
const GOAL = { below: 100 };

export function dueOnSqlite(setting: Setting): Promise<Figure[]> {
  return due(sqliteStorage(setting), setting, "SQLite");
}

export function dueOnPostgres(setting: Setting): Promise<Figure[]> {
  return due(postgresStorage(setting), setting, "PostgreSQL");
}

/** Many schedules that are due at the same moment: how soon after it the first and the last run is reported. */
async function due(newStorage: NewStorage, { turns, sizes }: Setting, storage: string): Promise<Figure[]> {
  const lags: Lags[] = [];
  for (let turn = 1; turn <= turns; turn++) {
    const lag = await measureLags(newStorage, sizes.dueSchedules);
    lags.push(lag);
    console.error(`  turn ${turn}: ${lag.firstMs.toFixed(0)} to ${lag.lastMs.toFixed(0)} ms`);
  }
  const count = sizes.dueSchedules.toLocaleString("en");
  return [
    figure(
      `${count} due at once, first run reported, ${storage}`,
      "ms",
      lags.map(({ firstMs }) => firstMs),
      GOAL,
    ),
    figure(
      `${count} due at once, last run reported, ${storage}`,
      "ms",
      lags.map(({ lastMs }) => lastMs),
    ),
  ];
}

interface Lags {
  readonly firstMs: number;
  readonly lastMs: number;
}

function measureLags(newStorage: NewStorage, count: number): Promise<Lags> {
  return withStorage(newStorage, async ({ url }) => {
    const rota = await openRota(url, {});
    await rota.start();
    const notifications = rota.notifications();
    const atMs = Date.now() + AHEAD_MS;
    await loadSchedules(rota, { count, schedule: { kind: "at", atMs } });
    if (Date.now() >= atMs) throw new Error("making the schedules took until they were due");
    let [started, firstMs, lastMs] = [0, 0, 0];
    for await (const { kind } of notifications) {
      if (kind !== "run.started") continue;
      started += 1;
      lastMs = performance.timeOrigin + performance.now() - atMs;
      if (started === 1) firstMs = lastMs;
      if (started === count) break;
    }
    await rota.stop();
    return { firstMs, lastMs };
  });
}
