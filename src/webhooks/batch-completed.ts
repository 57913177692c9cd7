import type { BatchCompleted } from "../model/batch.ts";
import { rfc3339 } from "../model/text/rfc3339.ts";
import type { BatchEnd } from "../storage/storage.ts";

/** What is told of a batch of which all tasks have ended. */
export function batchCompleted({
  id: batchId,
  parallelism,
  counts,
  createdAt,
  completedAt,
}: BatchEnd): BatchCompleted {
  return {
    type: "batch.completed",
    batchId,
    parallelism,
    counts,
    createdAt: rfc3339(createdAt),
    completedAt: rfc3339(completedAt),
  };
}
