import type { Batch, BatchTask } from "../model/batch.ts";
import { RotaError } from "../model/errors.ts";
import { rfc3339 } from "../model/rfc3339.ts";
import { looksLikeTaskId } from "../model/task-id.ts";
import type { TaskRecord } from "../model/task-record.ts";
import { isTerminal, type TaskState } from "../model/task-state.ts";
import type { Storage } from "../storage/storage.ts";

/** Tasks read at once: more than a batch has. */
const PAGE = 1_000;

/** The tasks of a batch, oldest first. Throws `not_found` when there is none, or none is left. */
export async function readBatch(storage: Storage, tenant: string, batchId: string): Promise<TaskRecord[]> {
  // What does not look like an id names nothing; PostgreSQL would not even look for some of it.
  const tasks = looksLikeTaskId(batchId)
    ? (await storage.tasks.list({ tenant, batch: batchId, limit: PAGE })).tasks
    : [];
  if (tasks.length === 0) throw new RotaError("not_found", "batch not found");
  return tasks.reverse();
}

export function toBatch(batchId: string, tasks: readonly TaskRecord[]): Batch {
  const counts: Partial<Record<TaskState, number>> = {};
  for (const { state } of tasks) counts[state] = (counts[state] ?? 0) + 1;
  const ids = new Set(tasks.map(({ id }) => id));
  return {
    batchId,
    createdAt: rfc3339(Math.min(...tasks.map(({ createdAt }) => createdAt))),
    counts,
    tasks: tasks.map(toBatchTask),
    edges: tasks.flatMap(({ id: to, spec }) =>
      (spec.dependsOn ?? []).filter((from) => ids.has(from)).map((from) => ({ from, to })),
    ),
  };
}

/** The ids of those that have not ended. */
export function stillOpen(tasks: readonly TaskRecord[]): string[] {
  return tasks.filter(({ state }) => !isTerminal(state)).map(({ id }) => id);
}

function toBatchTask({ id, agent, state, error, spec }: TaskRecord): BatchTask {
  return {
    taskId: id,
    ...(spec.key === undefined ? {} : { key: spec.key }),
    agentId: agent,
    state,
    ...(error === null ? {} : { error }),
  };
}
