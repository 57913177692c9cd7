import type { TerminalState } from "../../../model/task-state.ts";
import { dependencyError } from "../../dependency-error.ts";
import { addEvent } from "../log/add-event.ts";
import { dependantsOf, type OracleState, type OracleTask } from "../state.ts";

/** Ends a task, and queues the notification of its dependants: `reason`, or that it is done. */
export function endTask(
  state: OracleState,
  task: OracleTask,
  end: TerminalState,
  error: string | null,
  reason = end === "done" ? null : dependencyError(task.id, end),
): void {
  task.state = end;
  task.parked = null;
  task.inSession = false;
  task.takenBy = null;
  task.error = error;
  task.completedAt = state.clock.now();
  if (dependantsOf(state, task).length > 0) {
    state.releases.push({ parentSeq: task.seq, error: reason, comesBack: null, afterSeq: 0 });
  }
}

export function failTask(state: OracleState, task: OracleTask, error: string): void {
  endTask(state, task, "failed", error);
  addEvent(state, "task.failed", task, { error });
}
