import type { TaskLogLine } from "../model/task-log.ts";

export type { TaskLogLevel, TaskLogLine } from "../model/task-log.ts";

export interface TaskLogFilter {
  /** The number of the attempt; left out: the newest attempt with log lines. */
  readonly attempt?: number;
  /** Only lines with a larger number; left out: from the first that is stored. */
  readonly after?: number;
  /** The most lines: 1 to 2000, 500 by default. */
  readonly limit?: number;
}

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
