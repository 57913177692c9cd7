import type { CounterFault, RecountParams } from "../../storage.ts";
import { TaskCounts } from "../../task-counts.ts";
import type { PostgresDatabase } from "../connection/database.ts";
import { checkAgentQueues, QUEUE_CHECKS } from "./recount-agent-queues.ts";
import { checkBatches } from "./recount-batches.ts";
import { KEY_CHECKS } from "./recount-keys.ts";
import { SCHEDULE_CHECKS } from "./recount-schedules.ts";
import { SESSION_CHECKS } from "./recount-sessions.ts";
import { RecountSlices } from "./recount-slices.ts";
import { checkTallies, readTallies } from "./recount-tallies.ts";
import { countAllTasks } from "./recount-tasks.ts";
import { recountStored } from "./stored-bytes.ts";

const CHECKS = [QUEUE_CHECKS, SESSION_CHECKS, KEY_CHECKS, SCHEDULE_CHECKS];

/**
 * Counts everything in slices and changes nothing. Tasks change between the slices, so a counter that differs is only suspected.
 * One statement then recounts it with its rows, in one snapshot.
 */
export async function recountAll(db: PostgresDatabase, params: RecountParams = {}): Promise<CounterFault[]> {
  const recount = new RecountSlices(db, params);
  const counts = new TaskCounts();
  const before = await readTallies(recount);
  recount.expect(before.tally.reduce((sum, { tasks }) => sum + tasks, 0));
  await countAllTasks(recount, counts);
  await checkTallies(recount, counts, before);
  await checkAgentQueues(recount, counts);
  await checkBatches(recount, counts);
  for (const { rows = [], pages = [], whole = [] } of CHECKS) {
    for (const check of rows) await recount.checkRows(check);
    for (const check of pages) await recount.checkPages(check);
    for (const text of whole) await recount.checkWhole(text);
  }
  const onSlice = (tasks: number) => recount.sliceDone(tasks);
  const stored = await recountStored(db, { limit: recount.rows, onSlice });
  return [...recount.faults, ...stored];
}
