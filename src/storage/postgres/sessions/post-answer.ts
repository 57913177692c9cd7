import { jsonText } from "../../../model/text/json-text.ts";
import type { PostParams } from "../../storage.ts";
import type { PostgresDatabase } from "../connection/database.ts";
import { readSql } from "../connection/sql-file.ts";
import { PREEMPT } from "../tasks/preempt-tasks.ts";
import { RELEASED_MAX } from "../tasks/settle-moves.ts";
import { toTaskRow } from "../tasks/task-forms.ts";
import { NO_LIMIT } from "./send-message.ts";

/** Adds a task that is done to a session. */
export async function postAnswer(db: PostgresDatabase, { task, result }: PostParams): Promise<void> {
  await db.write({
    name: "post_answer",
    text: "select post_answer($1, $2, $3)",
    values: [JSON.stringify([toTaskRow(task)]), jsonText(result) ?? "null"],
  });
  db.signal({ kind: "events" });
  db.signal({ kind: "work" });
}

export const POST_FUNCTIONS = readSql(new URL("./post-answer.sql", import.meta.url), {
  NO_LIMIT,
  RELEASED_MAX,
  PREEMPT,
});
