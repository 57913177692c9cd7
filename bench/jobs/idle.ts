import { type EmptyStorage, type NewStorage, postgresStorage, sqliteStorage } from "../empty-storage.ts";
import { type Figure, figure } from "../figure.ts";
import { type Counter, type IdleCost, measureIdleCost } from "../idle-cost.ts";
import type { Setting } from "../job.ts";
import { countTransactions } from "../postgres/count-transactions.ts";
import { countStatements } from "../sqlite/count-statements.ts";

const CPU_GOAL = { below: 0.3 };

export async function idleOnSqlite(setting: Setting): Promise<Figure[]> {
  const costs = await idle(sqliteStorage(setting), setting, async () => [countStatements()]);
  return [
    figure("CPU, idle on SQLite", "percent", percents(costs), CPU_GOAL),
    figure(`statements in ${setting.sizes.idleSec} s, idle on SQLite`, "count", counted(costs)),
  ];
}

export async function idleOnPostgres(setting: Setting): Promise<Figure[]> {
  const { postgresUrl, sizes } = setting;
  const costs = await idle(postgresStorage(setting), setting, async ({ url }) => [
    await countTransactions(url, postgresUrl ?? ""),
  ]);
  return [
    figure("CPU, idle on PostgreSQL", "percent", percents(costs), CPU_GOAL),
    figure(`transactions in ${sizes.idleSec} s, idle on PostgreSQL`, "count", counted(costs)),
  ];
}

async function idle(
  newStorage: NewStorage,
  { turns, sizes }: Setting,
  counters: (target: EmptyStorage) => Promise<readonly Counter[]>,
): Promise<IdleCost[]> {
  const costs: IdleCost[] = [];
  for (let turn = 1; turn <= turns; turn++) {
    const cost = await measureIdleCost(newStorage, { seconds: sizes.idleSec, counters });
    costs.push(cost);
    console.error(`  turn ${turn}: ${cost.cpuPercent.toFixed(2)} % of a core`);
  }
  return costs;
}

function percents(costs: readonly IdleCost[]): number[] {
  return costs.map(({ cpuPercent }) => cpuPercent);
}

function counted(costs: readonly IdleCost[]): number[] {
  return costs.map(({ counted: [first = Number.NaN] }) => first);
}
