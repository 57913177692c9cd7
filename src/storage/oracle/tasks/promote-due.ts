import { isWaiting, type OracleState, type OracleTask, signal } from "../state.ts";
import { enterQueue } from "./enter-queue.ts";
import { preempt } from "./preempt-tasks.ts";
import { settleMoves } from "./settle-moves.ts";

export function promoteDue(state: OracleState, { limit }: { limit: number }): { promoted: number } {
  const due = state.tasks
    .filter((task) => task.state === "delayed" && runAtOf(task) <= state.clock.now())
    .sort((a, b) => runAtOf(a) - runAtOf(b) || a.seq - b.seq)
    .slice(0, limit);
  // A message in its debounce window may already have entered the queue ahead of the task after it.
  for (const task of due) if (task.state === "delayed") enterQueue(state, task);
  settleMoves(state);
  preempt(state);
  if (due.length > 0) signal(state, { kind: "work" });
  return { promoted: due.length };
}

export function nextDueAt(state: OracleState): number | null {
  const moments = state.tasks.flatMap((task) => [
    ...(task.state === "delayed" ? [runAtOf(task)] : []),
    ...(isWaiting(task) && task.deadline !== null ? [task.deadline] : []),
  ]);
  return moments.length === 0 ? null : Math.min(...moments);
}

/** A delayed task always has `runAt`; only its type does not say so. */
function runAtOf(task: OracleTask): number {
  if (task.runAt === null) throw new Error("A delayed task says until when.");
  return task.runAt;
}
