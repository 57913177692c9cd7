import type { TaskLabels } from "../../storage.ts";
import { isWaiting, type OracleState, type OracleTask, signal } from "../state.ts";
import { failTask } from "./end-task.ts";
import { preempt } from "./preempt-tasks.ts";
import { settleMoves } from "./settle-moves.ts";

export function expireTasks(state: OracleState, params: { limit: number }): { expired: TaskLabels[] } {
  const expired = expireOverdue(state, params);
  settleMoves(state);
  preempt(state);
  if (expired.length > 0) signal(state, { kind: "events" });
  return { expired };
}

export function expireOverdue(state: OracleState, { limit }: { limit: number }): TaskLabels[] {
  const overdue = state.tasks
    .filter((task) => isWaiting(task) && task.deadline !== null && task.deadline <= state.clock.now())
    .sort((a, b) => deadlineOf(a) - deadlineOf(b) || a.seq - b.seq)
    .slice(0, limit);
  for (const task of overdue) failTask(state, task, "deadline exceeded while queued");
  return overdue.map(({ tenant, agent, lane }) => ({ tenant, agent, lane }));
}

function deadlineOf(task: OracleTask): number {
  return task.deadline ?? Number.POSITIVE_INFINITY;
}
