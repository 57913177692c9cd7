import type { TaskLog } from "../../interface/task-logs.ts";
import { checkKnown, type Fields, optionalNumber } from "../../model/input/field-checks.ts";
import type { Redactor } from "../../model/redactor.ts";
import type { Scope } from "../../model/scope.ts";
import { TASK_LOG_MAX } from "../../model/task-log.ts";
import { rfc3339 } from "../../model/text/rfc3339.ts";
import type { Storage } from "../../storage/storage.ts";

const LIMIT_DEFAULT = 500;
const NUMBERS = { min: 1, max: 2_147_483_647 } as const;

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
  checkKnown(filter, ["attempt", "after", "limit"]);
  const page = await storage.logs.read({
    ...scope,
    taskId,
    attempt: optionalNumber(filter, "attempt", NUMBERS),
    after: optionalNumber(filter, "after", { ...NUMBERS, min: 0 }) ?? 0,
    limit: optionalNumber(filter, "limit", { min: 1, max: TASK_LOG_MAX.lines }) ?? LIMIT_DEFAULT,
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
