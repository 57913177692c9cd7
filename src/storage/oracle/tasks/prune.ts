import { isTerminal } from "../../../model/task-state.ts";
import { refreshReceiver } from "../log/receivers.ts";
import { countBeforePrune } from "../log/rollups.ts";
import { forgetEmptySessions } from "../sessions/sessions.ts";
import { dependantsOf, findTask, type OracleState, type OracleTask } from "../state.ts";
import { forgetEmptyBatches } from "./batches.ts";

/**
 * The log leads: walking its oldest entries finds what has ended long enough ago without looking at anything else.
 * Events of a task that is gone lie about unread until their own turn comes.
 */
export function prune(
  state: OracleState,
  { retentionMs, rejectedMax, limit }: { retentionMs: number; rejectedMax: number; limit: number },
): { tasks: number; more: boolean } {
  const now = state.clock.now();
  const cutoff = now - retentionMs;
  // What claims to be of a distant future was written while the clock was wrong: it must not keep everything behind it.
  // Of the near future is what was written just before the clock was set right, and that is new.
  const isPast = (at: number) => at < cutoff || at > now + retentionMs;
  const isCounted = countBeforePrune(state, isPast);
  const firstKept = state.events.findIndex((event) => !isPast(event.at));
  const past = isCounted ? state.events.slice(0, firstKept === -1 ? undefined : firstKept) : [];
  const old = past.slice(0, limit);
  state.events = state.events.slice(old.length);

  const named = [...new Set(old.flatMap(({ taskSeq }) => [taskSeq, ...siblings(state, taskSeq)]))];
  const ended = named.reduce((sum, seq) => sum + removeEnded(state, seq, isPast), 0);
  const surplus = surplusOfRejected(state, rejectedMax).slice(0, limit);
  remove(state, surplus);
  return {
    tasks: ended + surplus.length,
    more: !isCounted || old.length === limit || surplus.length === limit,
  };
}

/** Whether somebody who has not ended depends on a task. */
function isWaitedFor(state: OracleState, task: OracleTask): boolean {
  return dependantsOf(state, task).some((dependant) => !isTerminal(dependant.state));
}

/** All tasks of the batch that one is of. */
function siblings(state: OracleState, seq: number): number[] {
  const batch = state.tasks.find((task) => task.seq === seq)?.batch ?? null;
  return batch === null ? [] : state.tasks.filter((task) => task.batch === batch).map((task) => task.seq);
}

/** The tasks of a batch stay until its end has been told for long enough. */
function isKeptByBatch(state: OracleState, task: OracleTask, isPast: (at: number) => boolean): boolean {
  const batch = state.batches.find(({ id }) => id === task.batch);
  return batch !== undefined && (batch.completedAt === null || !isPast(batch.completedAt));
}

/** A task that others still depend on stays: they want its result. With a task go those that were only kept for its sake. */
function removeEnded(state: OracleState, seq: number, isPast: (at: number) => boolean): number {
  const task = state.tasks.find((candidate) => candidate.seq === seq);
  if (task === undefined || !hasEnded(task, isPast) || isWaitedFor(state, task)) return 0;
  if (isKeptByBatch(state, task, isPast)) return 0;
  remove(state, [task]);
  const parents = task.state === "rejected" ? [] : task.dependsOn;
  return parents.reduce((sum, id) => {
    const parent = findTask(state, { tenant: task.tenant, id });
    return sum + (parent === undefined ? 0 : removeEnded(state, parent.seq, isPast));
  }, 1);
}

function hasEnded(task: OracleTask, isPast: (at: number) => boolean): boolean {
  return isTerminal(task.state) && task.completedAt !== null && isPast(task.completedAt);
}

function surplusOfRejected(state: OracleState, rejectedMax: number): OracleTask[] {
  const rejected = state.tasks.filter((task) => task.state === "rejected");
  return [...Map.groupBy(rejected, (task) => task.tenant).values()].flatMap((ofTenant) =>
    ofTenant
      .filter((task) => !isWaitedFor(state, task) && !isKept(state, task))
      .slice(0, Math.max(0, ofTenant.length - rejectedMax)),
  );
}

/** A rejected task stays while its batch has not ended, or a callback goes with it that is yet to be made. */
function isKept(state: OracleState, task: OracleTask): boolean {
  return isKeptByBatch(state, task, () => true) || hasPendingDelivery(state, task);
}

/** Whether a callback of it is yet to be made. */
function hasPendingDelivery(state: OracleState, task: OracleTask): boolean {
  return state.deliveries.some(({ taskSeq, status }) => taskSeq === task.seq && status === "pending");
}

/** Whether a task that has ended is still needed by a dependant, a batch that had not ended by then, or a callback. */
export function isNeeded(state: OracleState, task: OracleTask, endedBy: number): boolean {
  const isPast = (at: number) => at <= endedBy;
  return isWaitedFor(state, task) || isKeptByBatch(state, task, isPast) || hasPendingDelivery(state, task);
}

/** Deletes ended tasks with all that is theirs. */
export function remove(state: OracleState, tasks: readonly OracleTask[]): void {
  const gone = new Set(tasks);
  // Should they be retried, those that depended on what was done need not wait for it.
  for (const task of tasks) {
    for (const dependant of task.state === "done" ? dependantsOf(state, task) : []) {
      dependant.dependsOn = dependant.dependsOn.filter((id) => id !== task.id);
    }
  }
  state.tasks = state.tasks.filter((task) => !gone.has(task));
  const seqs = new Set(tasks.map(({ seq }) => seq));
  for (const seq of seqs) state.countedTokens.delete(seq);
  state.keys = state.keys.filter(({ taskSeq }) => !seqs.has(taskSeq));
  const undone = state.deliveries.filter(({ taskSeq, dueAt }) => seqs.has(taskSeq) && dueAt !== null);
  state.deliveries = state.deliveries.filter(({ taskSeq }) => !seqs.has(taskSeq));
  for (const delivery of undone) refreshReceiver(state, delivery);
  forgetEmptyBatches(state);
  forgetEmptySessions(state, tasks);
  // An agent of which nothing is left is forgotten: agents that come and go must not pile up.
  for (const { tenant, agent } of gone) {
    const isLeft = state.tasks.some((task) => task.tenant === tenant && task.agent === agent);
    if (!isLeft) state.lines = state.lines.filter((line) => line.tenant !== tenant || line.agent !== agent);
  }
  // And so is a tenant.
  state.tenantLines = state.tenantLines.filter(({ tenant }) =>
    state.lines.some((line) => line.tenant === tenant),
  );
}
