import { ALONE_AFTER_LOSSES, lostError } from "../../alone-queue.ts";
import type { RescuedTasks } from "../../storage.ts";
import { moveToAlone } from "../connection/abilities.ts";
import { addEvent } from "../log/add-event.ts";
import { askForKey, endAttempt, type OracleState, type OracleTask, signal } from "../state.ts";
import { beginAttempt } from "./begin-attempt.ts";
import { failTask } from "./end-task.ts";
import { preempt } from "./preempt-tasks.ts";
import { settleMoves } from "./settle-moves.ts";

export function rescueTasks(
  state: OracleState,
  { node, limit, maxLost }: { node: string; limit: number; maxLost?: number },
): RescuedTasks {
  if (!state.nodes.get(node)?.dead) return { requeued: [], failed: [] };
  const lost = state.tasks.filter((task) => task.held?.node === node).slice(0, limit);
  // They may have begun. A loss counts only for those that had for sure.
  const surelyBegun = new Set(lost.filter((task) => task.state === "running"));
  for (const task of lost) if (!surelyBegun.has(task)) beginAttempt(state, task);
  const rescued = lost.map((task) => ({
    task,
    again: rescueTask(state, task, { maxLost, counts: surelyBegun.has(task) }),
  }));
  settleMoves(state);
  preempt(state);
  if (lost.length > 0) signal(state, { kind: "events" }, { kind: "work" }, { kind: "due" });
  const labels = (again: boolean) =>
    rescued
      .filter((one) => one.again === again)
      .map(({ task: { tenant, agent, lane } }) => ({ tenant, agent, lane }));
  return { requeued: labels(true), failed: labels(false) };
}

/** Returns whether the task got another attempt. A lost attempt counts as a retry. */
function rescueTask(
  state: OracleState,
  task: OracleTask,
  { maxLost, counts }: { maxLost: number | undefined; counts: boolean },
): boolean {
  const attempt = task.attempts.length;
  if (maxLost !== undefined && counts) task.losses += 1;
  const isLost = maxLost !== undefined && task.losses >= maxLost;
  const error = isLost ? lostError(task.losses) : "worker lost";
  const again = !isLost && task.retryCount < task.maxRetriesIfLost;
  if (again && task.losses >= ALONE_AFTER_LOSSES) moveToAlone(state, task);
  endAttempt(state, task, "lost", error);
  if (!again) {
    failTask(state, task, error);
    return false;
  }
  askForKey(state, task);
  task.retryCount += 1;
  addEvent(state, "task.retrying", task, { attempt, error, retryAt: state.clock.now(), state: "queued" });
  return true;
}
