import { readSql } from "../connection/sql-file.ts";
import { parkedBy } from "./batches.ts";
import { RANK_IN_ITS_LANE } from "./rank.ts";

/** Whether task `task` could only fail again, because the requested deadline has passed. */
export function isOverdue(task: string, now: string): string {
  return `(${task}.deadline_after_ms is null and ${task}.deadline <= ${now}) is true`;
}

export const REQUEUE_FUNCTIONS = readSql(new URL("./requeue-task.sql", import.meta.url), {
  PARKED_BY: parkedBy("p_task"),
  RANK_IN_ITS_LANE,
  IS_OVERDUE: isOverdue("t", "p_now"),
});
