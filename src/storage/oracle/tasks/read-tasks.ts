import type { TaskRecord } from "../../../model/task-record.ts";
import type { TaskState } from "../../../model/task-state.ts";
import type { GetTaskParams, QueueDepth, TaskStatus, TreeTask } from "../../storage.ts";
import { findTask, isWaiting, type OracleState, type OracleTask, toRecord } from "../state.ts";

export function getTask(
  state: OracleState,
  { bytesMax = Number.POSITIVE_INFINITY, ...name }: GetTaskParams,
): TaskRecord | null {
  const task = findTask(state, name);
  return task === undefined || storedBytes(task) > bytesMax ? null : toRecord(task);
}

export function taskStatus(state: OracleState, params: { tenant: string; id: string }): TaskStatus | null {
  const task = findTask(state, params);
  return task === undefined ? null : { agent: task.agent, state: task.state, bytes: storedBytes(task) };
}

export function heldTask(
  state: OracleState,
  { tenant, id, token }: { tenant: string; id: string; token: number },
): TaskRecord | null {
  const task = findTask(state, { tenant, id });
  return task?.held?.token === token ? toRecord(task) : null;
}

export function taskTree(
  state: OracleState,
  { tenant, root, after, limit }: { tenant: string; root: string; after: number; limit: number },
): TreeTask[] {
  return state.tasks
    .filter((task) => task.tenant === tenant && task.seq > after && task.spec.within?.rootTaskId === root)
    .slice(0, limit)
    .map(({ seq, id, spec, state }) => ({ seq, id, parent: spec.within?.taskId ?? "", state }));
}

export function countTasks(
  state: OracleState,
  { tenant }: { tenant: string },
): Partial<Record<TaskState, number>> {
  const counts: Partial<Record<TaskState, number>> = {};
  for (const task of state.tasks) {
    if (task.tenant === tenant) counts[task.state] = (counts[task.state] ?? 0) + 1;
  }
  return counts;
}

export function queueDepth(state: OracleState, { tenant }: { tenant: string }): QueueDepth {
  const ofTenant = state.tasks.filter((task) => task.tenant === tenant);
  const counted = ofTenant.filter((task) => isWaiting(task) && task.origin === "task");
  return {
    queued: counted.length,
    inflight: ofTenant.filter((task) => task.held).length,
    agents: countByAgent(counted),
    ready: countByAgent(ofTenant.filter((task) => task.state === "queued")),
  };
}

function countByAgent(tasks: readonly OracleTask[]): Record<string, number> {
  const byAgent = Map.groupBy(tasks, ({ agent }) => agent);
  return Object.fromEntries([...byAgent].map(([agent, own]) => [agent, own.length]));
}

function storedBytes({ spec, result }: OracleTask): number {
  const bytesOf = (value: unknown) => Buffer.byteLength(JSON.stringify(value) ?? "");
  return bytesOf(spec) + bytesOf(result);
}
