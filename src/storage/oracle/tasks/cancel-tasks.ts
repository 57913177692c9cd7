import { isTerminal } from "../../../model/task-state.ts";
import type { CancelledTask, EndedTask } from "../../storage.ts";
import { addEvent } from "../log/add-event.ts";
import { endAttempt, findTask, type OracleState, type OracleTask, signal } from "../state.ts";
import { beginAttempt } from "./begin-attempt.ts";
import { endTask } from "./end-task.ts";
import { preempt } from "./preempt-tasks.ts";
import { settleMoves } from "./settle-moves.ts";

export function cancelTasks(
  state: OracleState,
  { tenant, ids, error }: { tenant: string; ids: readonly string[]; error: string | null },
): CancelledTask[] {
  const answers = ids.map((id) => cancelTask(state, tenant, id, error));
  settleMoves(state);
  preempt(state);
  signalCancelled(state, answers);
  return answers;
}

/** Ends tasks that have not ended, with all consequences. */
export function cancelThese(state: OracleState, tasks: readonly OracleTask[], error: string): EndedTask[] {
  const cancelled = tasks.map((task) => endNow(state, task, error));
  settleMoves(state);
  preempt(state);
  signalCancelled(state, cancelled);
  return cancelled;
}

function cancelTask(state: OracleState, tenant: string, id: string, error: string | null): CancelledTask {
  const task = findTask(state, { tenant, id });
  if (task === undefined) return { id, found: false };
  if (isTerminal(task.state)) return { id, found: true, was: task.state };
  return endNow(state, task, error);
}

export function endNow(state: OracleState, task: OracleTask, error: string | null): EndedTask {
  const token = task.held?.token ?? null;
  if (task.state === "assigned") beginAttempt(state, task);
  if (token !== null) endAttempt(state, task, "cancelled", error);
  endTask(state, task, "cancelled", error);
  addEvent(state, "task.cancelled", task, error === null ? null : { error });
  return { id: task.id, found: true, was: null, token, agent: task.agent, lane: task.lane };
}

export function signalCancelled(state: OracleState, cancelled: readonly CancelledTask[]): void {
  const tokens = cancelled.flatMap((answer) =>
    "token" in answer && answer.token !== null ? [answer.token] : [],
  );
  signal(state, { kind: "events" }, { kind: "work" });
  if (tokens.length > 0) signal(state, { kind: "fenced", tokens, reason: "cancelled" });
}
