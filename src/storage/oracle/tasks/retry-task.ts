import { namedDependency } from "../../dependency-error.ts";
import type { RetriedTask, RetryTaskParams } from "../../storage.ts";
import { dependantsOf, findTask, type OracleState, signal } from "../state.ts";
import { copyOf, orRestore, toInserted } from "./insert-tasks.ts";
import { preempt } from "./preempt-tasks.ts";
import { findBlocking, isOverdue, requeueTask } from "./requeue-task.ts";
import { settleMoves } from "./settle-moves.ts";
import { countBounded } from "./submit-bounds.ts";

/** A retry is never refused for a full queue: the task was admitted before. */
export function retryTask(state: OracleState, params: RetryTaskParams): RetriedTask {
  const task = findTask(state, params);
  if (task === undefined) return { found: false };
  if (task.state !== "failed" && task.state !== "cancelled") return { found: true, was: task.state };
  if (isOverdue(state, task)) return { found: true, was: "overdue" };
  const by = findBlocking(state, task);
  if (by !== undefined) return { found: true, was: "blocked", by };

  const comesBack = { retried: task.id, named: namedDependency(task.error) };
  const before = params.bounds === undefined ? {} : copyOf(state);
  requeueTask(state, task);
  const { bounds } = params;
  if (bounds !== undefined) orRestore(state, before, () => countBounded(state, bounds, [task]));
  if (params.dependants === true && dependantsOf(state, task).length > 0) {
    state.releases.push({ parentSeq: task.seq, error: null, comesBack, afterSeq: 0 });
  }
  settleMoves(state);
  preempt(state);
  signal(state, { kind: "events" }, { kind: "work" }, { kind: "due" });
  return { found: true, was: null, task: toInserted(state, task) };
}
