import { SESSION_ENDS } from "../../../model/session.ts";
import { addEvent } from "../log/add-event.ts";
import { enterBatch, type OracleSession, type OracleState, type OracleTask, sessionOf } from "../state.ts";
import { endTask } from "./end-task.ts";

/** From now on only limits, its session, its batch and its concurrency key can keep it from starting. */
export function enterQueue(state: OracleState, task: OracleTask): void {
  const session = sessionOf(state, task);
  // A task that its session had admitted before has kept its position.
  if (session === undefined || task.inSession) {
    enterBatch(state, task);
    return;
  }
  if (task.sessionPosition <= session.cutoff) {
    endTask(state, task, "cancelled", SESSION_ENDS.stale);
    addEvent(state, "task.cancelled", task, { error: SESSION_ENDS.stale });
    return;
  }
  if (session.debounce?.taskSeq === task.seq) session.debounce = null;
  endDebounce(state, session);
  session.lastPosition += 1;
  task.sessionPosition = session.lastPosition;
  task.state = "queued";
  task.parked = "session";
}

/** Ends the debounce window: its message enters the queue, because something came after it. */
export function endDebounce(state: OracleState, session: OracleSession): void {
  const task = state.tasks.find(({ seq }) => seq === session.debounce?.taskSeq);
  session.debounce = null;
  if (task?.state === "delayed") enterQueue(state, task);
}
