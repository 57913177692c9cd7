import Sqlite from "better-sqlite3";
import { batchConflict } from "../../batch-conflict.ts";
import type { InsertedTask, InsertTasksParams, NewBatch, NewTask } from "../../storage.ts";
import type { SqliteDatabase } from "../connection/database.ts";
import type { Transaction } from "../connection/transaction.ts";
import type { LaneRow } from "../counters/ledger.ts";
import type { Admission } from "./steps/admit-task.ts";
import { alreadyInserted, insertTask } from "./steps/insert-task.ts";
import { findByKey } from "./steps/keep-key.ts";
import { addBatch, forgetEmptyBatch } from "./steps/settle-batches.ts";
import { enterTasksOfAgentQueues } from "./tasks-of-agent-queue.ts";

/** Inserts new tasks, each admitted or rejected by itself. */
export async function insertTasks(db: SqliteDatabase, params: InsertTasksParams): Promise<InsertedTask[]> {
  const inserted = insertOnce(db, params);
  enterTasksOfAgentQueues(db, db.lastTaskSeq);
  await db.durable();
  return inserted;
}

function insertOnce(db: SqliteDatabase, params: InsertTasksParams): InsertedTask[] {
  try {
    return writeTasks(db, params, () => null);
  } catch (error) {
    // Looking up every id first would cost each insert a search for what almost never happens.
    if (!isDoubledId(error)) throw error;
    return writeTasks(db, params, alreadyInserted);
  }
}

function writeTasks(
  db: SqliteDatabase,
  { tasks, batches = [], limits }: InsertTasksParams,
  known: (tx: Transaction, id: string) => InsertedTask | null,
): InsertedTask[] {
  return db.transact((tx) => {
    for (const batch of batches) addBatch(tx, batch);
    const admission: Admission = { ...limits, waiting: waitingIn(tx.ledger.allLanes()), queued: new Map() };
    const inserted = tasks.map(
      (task) => findByKey(tx, task) ?? known(tx, task.id) ?? insertTask(tx, task, admission),
    );
    refuseConflicts(tasks, inserted, batches);
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
