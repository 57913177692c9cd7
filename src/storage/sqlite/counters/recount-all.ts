import type { CounterFault, RecountParams } from "../../storage.ts";
import type { SqliteDatabase } from "../connection/database.ts";
import { checkAgentQueues, checkLanes, checkTenants } from "./recount-agent-queues.ts";
import { checkBatches } from "./recount-batches.ts";
import { checkKeys } from "./recount-keys.ts";
import { checkSchedules } from "./recount-schedules.ts";
import { checkSessions } from "./recount-sessions.ts";
import { RecountSlices } from "./recount-slices.ts";
import { checkTallies } from "./recount-tallies.ts";
import { checkReadySet, checkTasksOfAgentQueues, countAllTasks } from "./recount-tasks.ts";
import { recountStored } from "./stored-bytes.ts";

/** Run one after another. The tasks are counted first; each counter is then compared with counts as of the same time. */
const CHECKS = [
  countAllTasks,
  checkReadySet,
  checkTasksOfAgentQueues,
  checkAgentQueues,
  checkLanes,
  checkTenants,
  checkTallies,
  checkBatches,
  checkSessions,
  checkKeys,
  checkSchedules,
];

/** One recount at a time: they share a temporary table. */
const underWay = new WeakMap<SqliteDatabase, Promise<unknown>>();

/** Counts everything in slices and changes nothing. */
export async function recountAll(db: SqliteDatabase, params: RecountParams = {}): Promise<CounterFault[]> {
  const before = underWay.get(db);
  const recount = (async () => {
    await before?.catch(() => undefined);
    return runChecks(db, params);
  })();
  underWay.set(db, recount);
  return recount;
}

async function runChecks(db: SqliteDatabase, params: RecountParams): Promise<CounterFault[]> {
  const recount = new RecountSlices(db, params);
  try {
    for (const check of CHECKS) await check(recount);
    const onSlice = (tasks: number) => recount.sliceDone(tasks);
    const stored = await recountStored(db, { limit: recount.limit, onSlice });
    return [...recount.faults, ...stored];
  } finally {
    recount.census.close();
  }
}
