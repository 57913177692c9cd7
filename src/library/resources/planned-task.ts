import type { PlannedTask } from "../../interface/tasks.ts";
import type { Redactor } from "../../model/redactor.ts";
import { toTask } from "../../model/task-record.ts";
import type { TaskState } from "../../model/task-state.ts";
import type { NewTask } from "../../storage/storage.ts";

/** A task as it would be shown if it was stored now. */
export function plannedTask(task: NewTask, now: number, redactor: Redactor): PlannedTask {
  const { deadline, deadlineAfterMs, runAt, session } = task;
  const couldStartAt = Math.max(runAt ?? now, now);
  const record = {
    ...task,
    seq: 0,
    state: firstState(task, now),
    position: 0,
    createdAt: now,
    deadline: deadline ?? (deadlineAfterMs === null ? null : couldStartAt + deadlineAfterMs),
    retryCount: 0,
    session: session?.key ?? null,
    startedAt: null,
    completedAt: null,
    result: undefined,
    error: null,
    usage: null,
    attempts: [],
  };
  const { taskId: _id, position: _position, attempts: _attempts, ...planned } = toTask(record, redactor);
  return planned;
}

/** A task whose dependencies are all done already would be queued: only the transaction can know. */
function firstState({ dependsOn, runAt }: NewTask, now: number): TaskState {
  if (dependsOn.length > 0) return "waiting_dependency";
  return runAt !== null && runAt > now ? "delayed" : "queued";
}
