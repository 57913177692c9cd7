import { rankOf } from "../../../model/priority.ts";
import { isAloneKind } from "../../alone-queue.ts";
import type { BlockingDependency } from "../../storage.ts";
import { updateAgentQueue } from "../connection/abilities.ts";
import { addEvent } from "../log/add-event.ts";
import { reopenRun } from "../schedules/runs.ts";
import { countWaiting, findTask, type OracleState, type OracleTask, sessionOf, unmetOf } from "../state.ts";
import { enterQueue } from "./enter-queue.ts";

/** Puts a failed or cancelled task back to where it waits. Its retries and its default deadline start anew. */
export function requeueTask(state: OracleState, task: OracleTask): void {
  const now = state.clock.now();
  const error = task.error;
  task.losses = 0;
  if (isAloneKind(task.queueKind)) task.queueKind = null;
  updateAgentQueue(state, task);
  task.unservedAt = null;
  const waits = unmetOf(state, task) > 0;
  // A requested `runAt` still holds; the delay of an earlier retry does not.
  const isDelayed = !waits && task.attempts.length === 0 && task.runAt !== null && task.runAt > now;
  task.position = waits || isDelayed ? 0 : countWaiting(state, task) + 1;
  const session = sessionOf(state, task);
  if (session !== undefined) {
    // The task is accepted anew, so it gets a new position.
    session.lastPosition += 1;
    task.sessionPosition = session.lastPosition;
    task.steerUntil = null;
    task.collects = false;
  }
  task.rank = rankOf(task, state.lanes.get(task.lane)?.agingMs ?? 0);
  if (waits || isDelayed) task.state = waits ? "waiting_dependency" : "delayed";
  else enterQueue(state, task);
  task.retryCount = 0;
  task.error = null;
  task.completedAt = null;
  if (task.defaultDeadlineMs !== null)
    task.deadline = waits
      ? null
      : Math.max(now, (isDelayed ? task.runAt : null) ?? now) + task.defaultDeadlineMs;
  addEvent(state, "task.retrying", task, {
    attempt: task.attempts.length,
    ...(error === null ? {} : { error }),
    retryAt: isDelayed ? (task.runAt ?? now) : now,
    state: task.state,
  });
  reopenRun(state, task);
}

/** Whether it could only fail again, because the requested deadline has passed. */
export function isOverdue(state: OracleState, task: OracleTask): boolean {
  return task.defaultDeadlineMs === null && task.deadline !== null && task.deadline <= state.clock.now();
}

/** A dependency that will never be done; undefined: there is none. */
export function findBlocking(
  state: OracleState,
  { tenant, dependsOn }: OracleTask,
): BlockingDependency | null | undefined {
  const parents = dependsOn.map((id) => findTask(state, { tenant, id }));
  const ended = parents
    .flatMap((parent) => parent ?? [])
    .toSorted((a, b) => a.seq - b.seq)
    .find(({ state: found }) => found === "failed" || found === "cancelled" || found === "rejected");
  if (ended !== undefined) return { id: ended.id, state: ended.state as BlockingDependency["state"] };
  return parents.includes(undefined) ? null : undefined;
}
