import type { BatchCompleted } from "../model/batch.ts";
import { rfc3339 } from "../model/text/rfc3339.ts";
import type { BatchEnd } from "../storage/storage.ts";

/** The body of the callback for a batch whose tasks have all ended. */
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
