import Sqlite from "better-sqlite3";
import { batchConflict } from "../../batch-conflict.ts";
import { claimOfInsert } from "../../insert-claim.ts";
import type { InsertedTask, InsertTasksParams, NewBatch, NewTask } from "../../storage.ts";
import type { SqliteDatabase } from "../connection/database.ts";
import type { Transaction } from "../connection/transaction.ts";
import type { LaneRow } from "../counters/ledger.ts";
import { finishAndClaim } from "./finish-and-claim.ts";
import type { Admission } from "./steps/admit-task.ts";
import { countBounded } from "./steps/count-bounded.ts";
import { alreadyInserted, insertTask, UsualRows } from "./steps/insert-task.ts";
import { findByKey } from "./steps/keep-key.ts";
import { addBatch, forgetEmptyBatch } from "./steps/settle-batches.ts";
import { enterTasksOfAgentQueues } from "./tasks-of-agent-queue.ts";

/** Inserts new tasks, each admitted or rejected by itself. */
export async function insertTasks(db: SqliteDatabase, params: InsertTasksParams): Promise<InsertedTask[]> {
  const { inserted, areNew } = insertOnce(db, params);
  enterTasksOfAgentQueues(db, db.lastTaskSeq);
  const claim = areNew ? claimOfInsert(params) : undefined;
  if (claim !== undefined) {
    const { node, claims, onClaimed } = claim;
    onClaimed(await finishAndClaim(db, { node, finishes: [], progress: [], claims }));
  }
  // A claimed task starts meanwhile, so this thread must not block on the disk.
  const { tasks, isOneCall = tasks.length === 1 } = params;
  await db.durable({ hasSingleWaiter: isOneCall && claim === undefined });
  return inserted;
}

/** `areNew`: none of the tasks existed before. */
function insertOnce(
  db: SqliteDatabase,
  params: InsertTasksParams,
): { inserted: InsertedTask[]; areNew: boolean } {
  try {
    return { inserted: writeTasks(db, params), areNew: true };
  } catch (error) {
    // Looking up every id first would cost each insert a search for what almost never happens.
    if (!isDoubledId(error)) throw error;
    return { inserted: writeTasks(db, params, alreadyInserted), areNew: false };
  }
}

function writeTasks(
  db: SqliteDatabase,
  { tasks, batches = [], limits, bounds }: InsertTasksParams,
  known?: (tx: Transaction, id: string) => InsertedTask | null,
): InsertedTask[] {
  return db.transact((tx) => {
    for (const batch of batches) addBatch(tx, batch);
    const admission: Admission = { ...limits, waiting: waitingIn(tx.ledger.allLanes()), queued: new Map() };
    const created: number[] = [];
    // To find tasks by their ids, each has to be written before the next.
    const rows = known === undefined ? new UsualRows(tx) : undefined;
    const insert = (task: NewTask) => {
      const answer = insertTask(tx, task, admission, rows);
      if (answer.rejection === null) created.push(answer.seq);
      return answer;
    };
    const inserted = tasks.map((task) => findByKey(tx, task) ?? known?.(tx, task.id) ?? insert(task));
    rows?.write();
    refuseConflicts(tasks, inserted, batches);
    if (bounds !== undefined) countBounded(tx, bounds, created);
    for (const { id } of batches) forgetEmptyBatch(tx, id);
    tx.save();
    const answers = inserted.map((answer) => asItIsNow(tx, answer));
    tx.signal("events");
    if (answers.some(({ state }) => state === "queued")) tx.signal("work");
    if (answers.some(({ runAt, deadline }) => runAt !== null || deadline !== null)) tx.signal("due");
    return answers;
  });
}

/** How many tasks wait in all lanes, as admission counts them: without those of disabled tenants. */
function waitingIn(lanes: ReadonlyMap<string, LaneRow>): number {
  let sum = 0;
  for (const { waiting, exempt } of lanes.values()) sum += waiting - exempt;
  return sum;
}

/**
 * A batch is inserted whole or not at all: if one of its tasks has a key that was used for another request, the whole call
 * fails.
 */
function refuseConflicts(
  tasks: readonly NewTask[],
  inserted: readonly InsertedTask[],
  batches: readonly NewBatch[],
): void {
  for (const [index, { id, repeats }] of inserted.entries()) {
    const task = tasks[index];
    if (repeats === "other" && task !== undefined && batches.some((batch) => batch.id === task.batch)) {
      throw batchConflict({ taskId: id, refused: task.id });
    }
  }
}

function isDoubledId(error: unknown): boolean {
  return error instanceof Sqlite.SqliteError && error.code === "SQLITE_CONSTRAINT_UNIQUE";
}

/** The state of a task at the end of the transaction that inserted it: a dependency that had failed may have cancelled it. */
function asItIsNow(tx: Transaction, answer: InsertedTask): InsertedTask {
  if (answer.state !== "waiting_dependency") return answer;
  const row = tx
    .prepare<{ state: InsertedTask["state"] }>("select resting_state as state from task where seq = ?")
    .get(answer.seq);
  return row === undefined ? answer : { ...answer, state: row.state };
}
