import type { Batch, BatchTask } from "../../model/batch.ts";
import { RotaError } from "../../model/errors.ts";
import type { Redactor } from "../../model/redactor.ts";
import { ownRecord, type Scope } from "../../model/scope.ts";
import { looksLikeTaskId } from "../../model/task-id.ts";
import { isTerminal, type TaskState } from "../../model/task-state.ts";
import { rfc3339 } from "../../model/text/rfc3339.ts";
import type { BatchRecord, BatchTaskRecord, InsertedTask, NewBatch, Storage } from "../../storage/storage.ts";

/** More tasks than a batch has. */
const TASKS_MAX = 1_000;

export interface StoredBatch {
  readonly batch: BatchRecord;
  /** Oldest first. */
  readonly tasks: readonly BatchTaskRecord[];
}

/** A batch and its tasks. Throws `not_found` when there is none, nothing is left of it, or other agents have tasks in it. */
export async function readBatch(storage: Storage, scope: Scope, id: string): Promise<StoredBatch> {
  const { tenant } = scope;
  // A text that does not look like an id names no batch; PostgreSQL refuses some of them with an error.
  const batch = looksLikeTaskId(id) ? await storage.tasks.getBatch({ tenant, id }) : null;
  const tasks = batch === null ? [] : await tasksOf(storage, tenant, id);
  const isOwn = tasks.length > 0 && tasks.every((task) => ownRecord(scope, task) !== null);
  if (batch === null || !isOwn) throw new RotaError("not_found", "batch not found");
  return { batch, tasks };
}

function tasksOf(storage: Storage, tenant: string, batch: string): Promise<BatchTaskRecord[]> {
  return storage.tasks.batchTasks({ tenant, batch, limit: TASKS_MAX });
}

/**
 * The batch id to return if all tasks repeat earlier ones. If one earlier batch has them all, its id. Otherwise the new id, for
 * which no batch is stored.
 */
export async function storedBatchId(
  storage: Storage,
  { id: meant, tenant }: NewBatch,
  inserted: readonly InsertedTask[],
): Promise<string> {
  const first = await storage.tasks.get({ tenant, id: inserted[0]?.id ?? "" });
  if (first === null || first.batch === null) return meant;
  const ids = new Set((await tasksOf(storage, tenant, first.batch)).map(({ id }) => id));
  return inserted.every(({ id }) => ids.has(id)) ? first.batch : meant;
}

export function toBatch({ batch, tasks }: StoredBatch, redactor: Redactor): Batch {
  const counts: Partial<Record<TaskState, number>> = {};
  for (const { state } of tasks) counts[state] = (counts[state] ?? 0) + 1;
  const ids = new Set(tasks.map(({ id }) => id));
  return {
    batchId: batch.id,
    parallelism: batch.parallelism,
    createdAt: rfc3339(batch.createdAt),
    ...(batch.completedAt === null ? {} : { completedAt: rfc3339(batch.completedAt) }),
    counts,
    tasks: tasks.map((task) => toBatchTask(task, redactor)),
    edges: tasks.flatMap(({ id: to, dependsOn }) =>
      dependsOn.filter((from) => ids.has(from)).map((from) => ({ from, to })),
    ),
  };
}

/** The ids of the tasks that have not ended. */
export function stillOpen({ tasks }: StoredBatch): string[] {
  return tasks.filter(({ state }) => !isTerminal(state)).map(({ id }) => id);
}

function toBatchTask({ id, agent, state, error, key }: BatchTaskRecord, redactor: Redactor): BatchTask {
  return {
    taskId: id,
    ...(key === null ? {} : { key }),
    agentId: agent,
    state,
    ...(error === null ? {} : { error: redactor.text(error) }),
  };
}
