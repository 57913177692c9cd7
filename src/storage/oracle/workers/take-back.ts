import { ALONE_AFTER_LOSSES, lostError } from "../../alone-queue.ts";
import type { TakeBackParams, TakenBack } from "../../storage.ts";
import { moveToAlone } from "../connection/abilities.ts";
import { addEvent } from "../log/add-event.ts";
import { askForKey, endAttempt, type OracleState, type OracleTask, signal } from "../state.ts";
import { failTask } from "../tasks/end-task.ts";
import { preempt } from "../tasks/preempt-tasks.ts";
import { settleMoves } from "../tasks/settle-moves.ts";
import { heldBy } from "./workers.ts";

export function takeBack(state: OracleState, params: TakeBackParams): TakenBack {
  const { worker, attempts, limit, maxLost, recorded = false } = params;
  const taken = heldBy(state, worker)
    .filter(({ held }) => attempts === undefined || attempts.some(({ token }) => token === held?.token))
    .filter((task) => maxLost !== undefined || task.state === "assigned")
    .slice(0, limit)
    .map((task) => ({ task, token: task.held?.token ?? 0, again: takeTaskBack(state, task, params) }));
  settleMoves(state);
  preempt(state);
  if (taken.length > 0) signal(state, { kind: "events" }, { kind: "work" }, { kind: "due" });
  const tokens = taken.map(({ token }) => token);
  if (tokens.length > 0 && maxLost !== undefined)
    signal(state, { kind: "fenced", tokens, reason: "cancelled" });
  for (const attempt of state.workerAttempts)
    if (recorded && tokens.includes(attempt.token))
      Object.assign(attempt, { endedAt: state.clock.now(), recorded });
  const labels = (again: boolean) =>
    taken
      .filter((one) => one.again === again)
      .map(({ task: { id, tenant, agent, lane } }) => ({ id, tenant, agent, lane }));
  return { requeued: labels(true), failed: labels(false) };
}

/** Returns whether the task got another attempt. */
function takeTaskBack(
  state: OracleState,
  task: OracleTask,
  { counted, maxLost, error: reason }: TakeBackParams,
): boolean {
  const attempt = task.attempts.length;
  const { startedAt } = task;
  const isRetry = counted && task.state === "running";
  if (maxLost !== undefined) task.losses += 1;
  const isLost = maxLost !== undefined && task.losses >= maxLost;
  const error = isLost ? lostError(task.losses) : reason;
  const again = !isLost && (!isRetry || task.retryCount < task.maxRetriesIfLost);
  if (again && task.losses >= ALONE_AFTER_LOSSES) moveToAlone(state, task);
  endAttempt(state, task, maxLost === undefined ? "interrupted" : "lost", error);
  if (!again) {
    failTask(state, task, error);
    return false;
  }
  askForKey(state, task);
  if (maxLost === undefined) {
    task.attempts.pop();
    task.startedAt = startedAt;
    return true;
  }
  if (isRetry) task.retryCount += 1;
  addEvent(state, "task.retrying", task, { attempt, error, retryAt: state.clock.now(), state: "queued" });
  return true;
}
