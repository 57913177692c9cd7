import type { TaskLog } from "../../interface/task-logs.ts";
import type { Fields } from "../../model/input/field-checks.ts";
import { readFields } from "../../model/input/read-fields.ts";
import { LOG_LINES_DEFAULT, TASK_LOG_FILTER } from "../../model/input/task-log-filter.ts";
import type { Redactor } from "../../model/redactor.ts";
import type { Scope } from "../../model/scope.ts";
import { rfc3339 } from "../../model/text/rfc3339.ts";
import type { Storage } from "../../storage/storage.ts";

interface TaskLogParams {
  readonly storage: Storage;
  readonly scope: Scope;
  readonly redactor: Redactor;
}

/** The log lines of a task; null: there is no such task. Throws `invalid_field`. */
export async function readTaskLog(
  { storage, scope, redactor }: TaskLogParams,
  taskId: string,
  filter: Fields,
): Promise<TaskLog | null> {
  const { attempt: wanted, after = 0, limit = LOG_LINES_DEFAULT } = readFields(TASK_LOG_FILTER, filter);
  const page = await storage.logs.read({
    ...scope,
    taskId,
    attempt: wanted,
    after,
    limit,
  });
  if (page === null) return null;
  const { attempt, lines, dropped, more } = page;
  return {
    taskId,
    attempt,
    lines: lines.map(({ n, at, level, text }) => ({ n, at: rfc3339(at), level, text: redactor.text(text) })),
    count: lines.length,
    dropped,
    next: more ? (lines.at(-1)?.n ?? null) : null,
  };
}
