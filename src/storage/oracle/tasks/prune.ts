import { isTerminal } from "../../../model/task-state.ts";
import { refreshReceiver } from "../log/receivers.ts";
import { countBeforePrune } from "../log/rollups.ts";
import { forgetEmptySessions } from "../sessions/sessions.ts";
import { dependantsOf, findTask, type OracleState, type OracleTask } from "../state.ts";
import { forgetEmptyBatches } from "./batches.ts";

/**
 * The log decides: its oldest entries name what ended long enough ago, and nothing else is read. Events of a deleted task stay,
 * unread, until they expire themselves.
 */
export function prune(
  state: OracleState,
  { retentionMs, rejectedMax, limit }: { retentionMs: number; rejectedMax: number; limit: number },
): { tasks: number; more: boolean } {
  const now = state.clock.now();
  const cutoff = now - retentionMs;
  // Entries far in the future were written while the clock was wrong. They must not keep everything after them. Entries in the
  // near future were written just before the clock was corrected: they are new.
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

/** Whether a task that has not ended depends on this task. */
function isWaitedFor(state: OracleState, task: OracleTask): boolean {
  return dependantsOf(state, task).some((dependant) => !isTerminal(dependant.state));
}

/** All tasks in the batch of this task. */
function siblings(state: OracleState, seq: number): number[] {
  const batch = state.tasks.find((task) => task.seq === seq)?.batch ?? null;
  return batch === null ? [] : state.tasks.filter((task) => task.batch === batch).map((task) => task.seq);
}

/** The tasks of a batch stay until the end of the batch has expired. */
function isKeptByBatch(state: OracleState, task: OracleTask, isPast: (at: number) => boolean): boolean {
  const batch = state.batches.find(({ id }) => id === task.batch);
  return batch !== undefined && (batch.completedAt === null || !isPast(batch.completedAt));
}

/** A task that others still depend on stays: they need its result. Dependencies kept only for a task are deleted with it. */
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

/** A rejected task stays while its batch has not ended, or while it has a pending delivery. */
function isKept(state: OracleState, task: OracleTask): boolean {
  return isKeptByBatch(state, task, () => true) || hasPendingDelivery(state, task);
}

function hasPendingDelivery(state: OracleState, task: OracleTask): boolean {
  return state.deliveries.some(({ taskSeq, status }) => taskSeq === task.seq && status === "pending");
}

/** Whether an ended task is still needed: by a dependant, by a batch that had not ended by then, or by a pending delivery. */
export function isNeeded(state: OracleState, task: OracleTask, endedBy: number): boolean {
  const isPast = (at: number) => at <= endedBy;
  return isWaitedFor(state, task) || isKeptByBatch(state, task, isPast) || hasPendingDelivery(state, task);
}

/** Deletes ended tasks with all that belongs to them. */
export function remove(state: OracleState, tasks: readonly OracleTask[]): void {
  const gone = new Set(tasks);
  // If dependants are retried, they need not wait for a deleted task that was done.
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
  // An agent without tasks loses its agent queues, so that agents that come and go do not pile up.
  for (const { tenant, agent } of gone) {
    const isLeft = state.tasks.some((task) => task.tenant === tenant && task.agent === agent);
    if (!isLeft)
      state.agentQueues = state.agentQueues.filter(
        (agentQueue) => agentQueue.tenant !== tenant || agentQueue.agent !== agent,
      );
  }
  // The same for tenants.
  state.tenantQueues = state.tenantQueues.filter(({ tenant }) =>
    state.agentQueues.some((agentQueue) => agentQueue.tenant === tenant),
  );
}
