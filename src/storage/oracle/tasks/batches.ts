import { isTerminal, type TaskState } from "../../../model/task-state.ts";
import type { BatchRecord, BatchTaskRecord } from "../../storage.ts";
import { addEvent, deliver } from "../log/add-event.ts";
import { askForKey, byRank, isActive, type OracleBatch, type OracleState, signal } from "../state.ts";

export function getBatch(state: OracleState, params: { tenant: string; id: string }): BatchRecord | null {
  const batch = state.batches.find(({ tenant, id }) => tenant === params.tenant && id === params.id);
  if (batch === undefined) return null;
  const { id, parallelism, createdAt, completedAt } = batch;
  return { id, parallelism, createdAt, completedAt };
}

export function batchTasks(
  state: OracleState,
  { tenant, batch, limit }: { tenant: string; batch: string; limit: number },
): BatchTaskRecord[] {
  return state.tasks
    .filter((task) => task.tenant === tenant && task.batch === batch)
    .slice(0, limit)
    .map(({ id, agent, state: found, error, spec }) => ({
      id,
      agent,
      state: found,
      error,
      key: spec.key ?? null,
      dependsOn: spec.dependsOn ?? [],
    }));
}

/** Each batch admits tasks while it has room. */
export function fillBatches(state: OracleState): void {
  for (const batch of state.batches) admitParked(state, batch);
}

/** Whether one more task of a batch may be active. */
export function hasBatchSlot(state: OracleState, id: string | null): boolean {
  const batch = state.batches.find((each) => each.id === id);
  if (batch === undefined || batch.parallelism === null) return true;
  return tasksOf(state, batch).filter(isActive).length < batch.parallelism;
}

/** Completes batches whose last task has ended: writes the event and adds the delivery. */
export function completeBatches(state: OracleState): void {
  const completed = state.batches
    .filter(
      (batch) => batch.completedAt === null && tasksOf(state, batch).every((task) => isTerminal(task.state)),
    )
    .sort((a, b) => lastOf(state, a).seq - lastOf(state, b).seq);
  for (const batch of completed) complete(state, batch);
}

/** A batch is deleted with the last of its tasks. */
export function forgetEmptyBatches(state: OracleState): void {
  state.batches = state.batches.filter((batch) => tasksOf(state, batch).length > 0);
}

function admitParked(state: OracleState, batch: OracleBatch): void {
  const tasks = tasksOf(state, batch);
  const active = tasks.filter(isActive).length;
  const parked = tasks.filter((task) => task.parked === "batch").sort(byRank);
  const admitted = parked.slice(0, Math.max((batch.parallelism ?? 0) - active, 0));
  for (const task of admitted) askForKey(state, task);
  if (admitted.length > 0) signal(state, { kind: "work" });
}

function complete(state: OracleState, batch: OracleBatch): void {
  const { id, parallelism, createdAt, callbackUrl } = batch;
  const completedAt = state.clock.now();
  batch.completedAt = completedAt;
  const last = lastOf(state, batch);
  const counts: Partial<Record<TaskState, number>> = {};
  for (const task of tasksOf(state, batch)) counts[task.state] = (counts[task.state] ?? 0) + 1;
  addEvent(state, "batch.completed", last, { state: last.state, counts });
  if (callbackUrl === null) return;
  deliver(state, last, { url: callbackUrl, batch: { id, parallelism, createdAt, completedAt, counts } });
}

function tasksOf(state: OracleState, { id }: OracleBatch) {
  return state.tasks.filter(({ batch }) => batch === id);
}

/** The task that was accepted last. The event and the delivery of the batch refer to it. */
function lastOf(state: OracleState, batch: OracleBatch) {
  const last = tasksOf(state, batch).at(-1);
  if (last === undefined) throw new Error("A batch has tasks.");
  return last;
}
