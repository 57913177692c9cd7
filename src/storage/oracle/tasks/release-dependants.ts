import { type ComeBack, isNamedBy, namedDependency } from "../../dependency-error.ts";
import { addEvent } from "../log/add-event.ts";
import { dependantsOf, type OracleState, type OracleTask, signal, unmetOf } from "../state.ts";
import { endTask } from "./end-task.ts";
import { enterQueue } from "./enter-queue.ts";
import { findBlocking, isOverdue, requeueTask } from "./requeue-task.ts";

/** How many dependants the operation that ends a task notifies; `release` notifies the rest. */
export const RELEASED_MAX = 100;

/** Notifies up to `limit` dependants of ends and retries that they have not followed yet. Returns how many. */
export function releaseDependants(state: OracleState, limit: number): number {
  let released = 0;
  for (let next = state.releases[0]; next !== undefined && released < limit; next = state.releases[0]) {
    const { parentSeq, afterSeq, error, comesBack } = next;
    const parent = state.tasks.find(({ seq }) => seq === parentSeq);
    const left = parent === undefined ? [] : dependantsOf(state, parent).filter(({ seq }) => seq > afterSeq);
    const dependants = left.slice(0, limit - released);
    for (const dependant of dependants) {
      if (comesBack === null) followEnd(state, dependant, error);
      else bringBack(state, dependant, parent?.id ?? "", comesBack);
    }
    const last = dependants.at(-1);
    if (last !== undefined && dependants.length === limit - released) next.afterSeq = last.seq;
    else state.releases.splice(state.releases.indexOf(next), 1);
    released += Math.max(dependants.length, 1);
  }
  return released;
}

/** Requeues a dependant that was cancelled because of its parent, unless it could only end in the same way again. */
function bringBack(state: OracleState, task: OracleTask, parent: string, comeBack: ComeBack): void {
  if (task.state !== "cancelled" || !isNamedBy(task.error, parent, comeBack)) return;
  if (isOverdue(state, task) || findBlocking(state, task) !== undefined) return;
  const comesBack = { retried: comeBack.retried, named: namedDependency(task.error) };
  requeueTask(state, task);
  if (dependantsOf(state, task).length > 0) {
    state.releases.push({ parentSeq: task.seq, error: null, comesBack, afterSeq: 0 });
  }
  signal(state, { kind: "events" }, { kind: "work" }, { kind: "due" });
}

function followEnd(state: OracleState, task: OracleTask, error: string | null): void {
  if (task.state !== "waiting_dependency") return;
  if (error !== null) {
    endTask(state, task, "cancelled", error, error);
    addEvent(state, "task.cancelled", task, { error });
    return;
  }
  if (unmetOf(state, task) > 0) return;
  const now = state.clock.now();
  const isDelayed = task.runAt !== null && task.runAt > now;
  if (isDelayed) task.state = "delayed";
  else enterQueue(state, task);
  if (task.defaultDeadlineMs !== null) {
    task.deadline = Math.max(now, task.runAt ?? now) + task.defaultDeadlineMs;
  }
  signal(state, { kind: "work" }, { kind: "due" });
}
