import { setTimeout as sleep } from "node:timers/promises";
import {
  type EmptyStorage,
  type NewStorage,
  postgresStorage,
  sqliteStorage,
  withStorage,
} from "../empty-storage.ts";
import { type Figure, figure } from "../figure.ts";
import { type Counter, type IdleCost, idleCost } from "../idle-cost.ts";
import type { Setting } from "../job.ts";
import { loadSchedules } from "../load-schedules.ts";
import { countTransactions } from "../postgres/count-transactions.ts";
import { countStatements } from "../sqlite/count-statements.ts";
import { openRota } from "../workload.ts";

const CPU_GOAL = { below: 0.3 };
/** PostgreSQL counts what a connection has done up to ten seconds later: what was made is counted by then. */
const SETTLE_MS = 12_000;
/** Not while this is measured. */
const EVERY_MS = 30 * 24 * 60 * 60 * 1_000;

export function idleSchedulesOnSqlite(setting: Setting): Promise<Figure[]> {
  return idleSchedules(sqliteStorage(setting), setting, {
    storage: "SQLite",
    counted: "statements",
    counters: async () => [countStatements()],
  });
}

export function idleSchedulesOnPostgres(setting: Setting): Promise<Figure[]> {
  return idleSchedules(postgresStorage(setting), setting, {
    storage: "PostgreSQL",
    counted: "transactions",
    counters: async ({ url }) => [await countTransactions(url, setting.postgresUrl ?? "")],
  });
}

interface Names {
  readonly storage: string;
  readonly counted: string;
  readonly counters: (target: EmptyStorage) => Promise<readonly Counter[]>;
}

/** What schedules take that are not due. */
function idleSchedules(
  newStorage: NewStorage,
  { turns, sizes }: Setting,
  { storage, counted, counters }: Names,
): Promise<Figure[]> {
  return withStorage(newStorage, async (target) => {
    const rota = await openRota(target.url, {});
    const begun = performance.now();
    await loadSchedules(rota, {
      count: sizes.idleSchedules,
      schedule: { kind: "every", everyMs: EVERY_MS },
    });
    const loadSec = (performance.now() - begun) / 1_000;
    console.error(`  loaded in ${loadSec.toFixed(1)} s`);
    await rota.start();
    await sleep(SETTLE_MS);
    const costs: IdleCost[] = [];
    for (let turn = 1; turn <= turns; turn++) {
      costs.push(await idleCost(target, { seconds: sizes.idleSec, counters }));
    }
    await rota.stop();
    const count = sizes.idleSchedules.toLocaleString("en");
    const percents = costs.map(({ cpuPercent }) => cpuPercent);
    const counts = costs.map((cost) => cost.counted[0] ?? Number.NaN);
    return [
      figure(`making ${count} schedules, ${storage}`, "s", [loadSec]),
      figure(`CPU, ${count} schedules idle, ${storage}`, "percent", percents, CPU_GOAL),
      figure(`${counted} in ${sizes.idleSec} s, ${count} schedules idle, ${storage}`, "count", counts),
    ];
  });
}
