import { rankOf } from "../../model/priority.ts";
import type { RetriedTask } from "../storage.ts";
import { findLineAnew } from "./abilities.ts";
import { toInserted } from "./insert-tasks.ts";
import { preempt } from "./preempt-tasks.ts";
import { reopenRun } from "./runs.ts";
import { settleMoves } from "./settle-moves.ts";
import {
  addEvent,
  countWaiting,
  enterQueue,
  findTask,
  type OracleState,
  sessionOf,
  tell,
  unmetOf,
} from "./state.ts";

/** Whoever asks for a retry has been let in before: admission is not asked again. */
export function retryTask(state: OracleState, params: { tenant: string; id: string }): RetriedTask {
  const task = findTask(state, params);
  if (task === undefined) return { found: false };
  if (task.state !== "failed" && task.state !== "cancelled") return { found: true, was: task.state };

  const now = state.clock.now();
  if (task.defaultDeadlineMs === null && task.deadline !== null && task.deadline <= now) {
    return { found: true, was: "overdue" };
  }
  const error = task.error;
  findLineAnew(state, task);
  task.unservedAt = null;
  const waits = unmetOf(state, task) > 0;
  // What was asked for holds; the wait of an earlier retry does not.
  const isDelayed = !waits && task.attempts.length === 0 && task.runAt !== null && task.runAt > now;
  task.position = waits || isDelayed ? 0 : countWaiting(state, task) + 1;
  const session = sessionOf(state, task);
  if (session !== undefined) {
    // Accepted anew.
    session.lastPlace += 1;
    task.place = session.lastPlace;
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
  settleMoves(state);
  preempt(state);
  tell(state, { kind: "events" }, { kind: "work" }, { kind: "due" });
  return { found: true, was: null, task: toInserted(state, task) };
}
