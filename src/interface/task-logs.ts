import type { InputOf } from "../model/input/schema.ts";
import type { TASK_LOG_FILTER } from "../model/input/task-log-filter.ts";
import type { TaskLogLine } from "../model/task-log.ts";

export type { TaskLogLevel, TaskLogLine } from "../model/task-log.ts";

export type TaskLogFilter = InputOf<typeof TASK_LOG_FILTER.fields>;

export interface TaskLog {
  readonly taskId: string;
  /** Null: there are no log lines. */
  readonly attempt: number | null;
  /** Oldest first. */
  readonly lines: readonly TaskLogLine[];
  readonly count: number;
  /** How many older lines of this attempt are no longer stored. */
  readonly dropped: number;
  /** Pass it as `after` for the next lines; null: there are no more now. */
  readonly next: number | null;
}
