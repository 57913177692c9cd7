import type { Redactor } from "../model/redactor.ts";
import type { Task } from "../model/task.ts";
import { type TaskRecord, toTask } from "../model/task-record.ts";
import type { TaskEnd } from "../storage/storage.ts";

/** The task as it was at this end. It may have been retried since, and even have ended again. */
export function snapshotAt(end: TaskEnd, record: TaskRecord, redactor: Redactor): Task {
  const { state, completedAt, error, retryCount } = end;
  const ended: TaskRecord = {
    ...record,
    state,
    completedAt,
    error,
    retryCount,
    attempts: record.attempts.slice(0, end.attempts),
    startedAt: end.attempts === 0 ? null : record.startedAt,
    // A done task is never retried: if this end is `done`, it is the last one, and the stored result belongs to it.
    result: state === "done" ? record.result : undefined,
  };
  return toTask(ended, redactor);
}
