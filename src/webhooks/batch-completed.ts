import { rfc3339 } from "../model/rfc3339.ts";
import type { TaskState } from "../model/task-state.ts";
import type { BatchEnd } from "../storage/storage.ts";

/** What is told of a batch of which all tasks have ended. */
export interface BatchCompleted {
  readonly type: "batch.completed";
  readonly batchId: string;
  readonly parallelism: number | null;
  /** How many of its tasks had ended in which state. */
  readonly counts: Readonly<Partial<Record<TaskState, number>>>;
  readonly createdAt: string;
  readonly completedAt: string;
}

export function batchCompleted({
  id,
  parallelism,
  counts,
  createdAt,
  completedAt,
}: BatchEnd): BatchCompleted {
  return {
    type: "batch.completed",
    batchId: id,
    parallelism,
    counts,
    createdAt: rfc3339(createdAt),
    completedAt: rfc3339(completedAt),
  };
}
