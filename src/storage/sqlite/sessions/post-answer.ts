import { jsonText } from "../../../model/text/json-text.ts";
import type { PostParams } from "../../storage.ts";
import type { SqliteDatabase } from "../connection/database.ts";
import { NO_ADMISSION } from "../tasks/steps/admit-task.ts";
import { endWaitingTask, WAITING_COLUMNS, type WaitingTask } from "../tasks/steps/end-waiting-task.ts";
import { alreadyInserted, insertTask } from "../tasks/steps/insert-task.ts";

/** Adds a task that is done to a session. */
export function postAnswer(db: SqliteDatabase, { task, result }: PostParams): Promise<void> {
  return db.transactDurably((tx) => {
    if (alreadyInserted(tx, task.id) !== null) return;
    const { seq } = insertTask(tx, task, NO_ADMISSION);
    const inserted = tx
      .prepare<WaitingTask>(`select ${WAITING_COLUMNS} from task t where t.seq = ?`)
      .get(seq);
    if (inserted === undefined) throw new Error(`task ${seq} is gone`);
    endWaitingTask(tx, inserted, { state: "done", error: null, result: jsonText(result) ?? "null" });
    tx.signal("events", "work");
  });
}
