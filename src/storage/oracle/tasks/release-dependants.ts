import { type ComeBack, isNamedBy, namedDependency } from "../../dependency-error.ts";
import { RELEASES_LOOKED_AT, shareReleases } from "../../shared-releases.ts";
import { addEvent } from "../log/add-event.ts";
import { dependantsOf, type OracleState, type OracleTask, signal, unmetOf } from "../state.ts";
import { endTask } from "./end-task.ts";
import { enterQueue } from "./enter-queue.ts";
import { findBlocking, isOverdue, requeueTask } from "./requeue-task.ts";

/** How many dependants the operation that ends a task notifies; `release` notifies the rest. */
export const RELEASED_MAX = 100;

/**
 * Notifies up to `limit` dependants of ends and retries that they have not followed yet, in equal shares for all tenants. Returns
 * how many.
 */
export function releaseDependants(state: OracleState, limit: number): number {
  let released = 0;
  while (state.releases.length > 0 && released < limit) {
    const oldest = state.releases.slice(0, RELEASES_LOOKED_AT).map((release) => ({
      release,
      parent: state.tasks.find(({ seq }) => seq === release.parentSeq),
    }));
    const { share, ofTenants } = shareReleases(
      oldest.map((each) => ({ ...each, tenant: each.parent?.tenant ?? "" })),
      limit - released,
    );
    for (const own of ofTenants) {
      const until = released + Math.min(share, limit - released);
      for (const { release, parent } of own) {
        if (released < until) released += releaseNext(state, release, { parent, limit: until - released });
      }
    }
  }
  return released;
}

/** A release without dependants counts as one: it takes time, too. */
function releaseNext(
  state: OracleState,
  release: OracleState["releases"][number],
  { parent, limit }: { parent: OracleTask | undefined; limit: number },
): number {
  const { afterSeq, error, comesBack } = release;
  const left = parent === undefined ? [] : dependantsOf(state, parent).filter(({ seq }) => seq > afterSeq);
  const dependants = left.slice(0, limit);
  for (const dependant of dependants) {
    if (comesBack === null) followEnd(state, dependant, error);
    else bringBack(state, dependant, parent?.id ?? "", comesBack);
  }
  const last = dependants.at(-1);
  if (last !== undefined && dependants.length === limit) release.afterSeq = last.seq;
  else state.releases.splice(state.releases.indexOf(release), 1);
  return Math.max(dependants.length, 1);
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
