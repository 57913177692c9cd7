import { effectiveMaxConcurrent, SESSION_ENDS } from "../../../model/session.ts";
import { isTerminal } from "../../../model/task-state.ts";
import type { SessionName } from "../../storage.ts";
import { addEvent } from "../log/add-event.ts";
import {
  byRank,
  enterBatch,
  type OracleSession,
  type OracleState,
  type OracleTask,
  takerOf,
} from "../state.ts";
import { endTask } from "../tasks/end-task.ts";

/**
 * Each session admits tasks while it has room. If it has admitted too many, it parks those that have not started, the last first.
 */
export function settleSessions(state: OracleState): void {
  for (const session of state.sessions) settleTaken(state, session);
  for (const session of state.sessions) {
    const max = maxOf(session);
    const active = tasksOfSession(state, session).filter(({ inSession }) => inSession);
    const waiting = active
      .filter(({ state: now, held }) => now === "queued" && held === null)
      .sort((a, b) => b.sessionPosition - a.sessionPosition);
    for (const task of waiting.slice(0, Math.max(active.length - max, 0))) {
      task.parked = "session";
      task.inSession = false;
    }
    admitParked(state, session, max);
  }
}

/** Messages end with the task whose attempt took them, or wait again if only the attempt ended. */
function settleTaken(state: OracleState, session: OracleSession): void {
  const taken = tasksOfSession(state, session)
    .filter((task) => task.takenBy !== null && takerOf(state, task) === undefined)
    .sort((a, b) => a.sessionPosition - b.sessionPosition);
  for (const task of taken) {
    const taker = state.tasks.find(({ seq }) => seq === task.takenBy?.seq);
    task.takenBy = null;
    if (taker === undefined || !isTerminal(taker.state)) continue;
    const { state: end, error } = taker;
    endTask(state, task, end, error);
    if (end === "done") task.result = { steeredInto: taker.id };
    const type = end === "done" ? "task.completed" : end === "failed" ? "task.failed" : "task.cancelled";
    addEvent(state, type, task, error === null ? null : { error });
  }
}

function admitParked(state: OracleState, session: OracleSession, max: number): void {
  const parked = tasksOfSession(state, session)
    .filter((task) => task.parked === "session")
    .sort((a, b) => a.sessionPosition - b.sessionPosition);
  for (const task of parked) {
    if (task.sessionPosition <= session.cutoff) {
      endTask(state, task, "cancelled", SESSION_ENDS.stale);
      addEvent(state, "task.cancelled", task, { error: SESSION_ENDS.stale });
      continue;
    }
    const active = tasksOfSession(state, session).filter(({ inSession }) => inSession);
    if (active.length >= max || task.takenBy !== null) continue;
    goAfter(
      task,
      active.filter(({ state: now, held }) => now === "queued" && held === null),
    );
    task.inSession = true;
    enterBatch(state, task);
  }
}

/** Order beats priority: an admitted task does not start before those that its session has admitted earlier. */
function goAfter(task: OracleTask, others: readonly OracleTask[]): void {
  const last = [...others].sort(byRank).at(-1);
  if (last === undefined || byRank(last, task) < 0) return;
  task.rank = last.seq < task.seq ? last.rank : last.rank + 1;
}

export function maxOf({ maxConcurrent, defaultMax, tokens, contextWindow }: OracleSession): number {
  return effectiveMaxConcurrent({ maxConcurrent: maxConcurrent ?? defaultMax, tokens, contextWindow });
}

export function tasksOfSession(state: OracleState, { tenant, key }: SessionName): OracleTask[] {
  return state.tasks.filter((task) => task.tenant === tenant && task.session === key);
}
