import type { TaskLogLine } from "../model/task-log.ts";

export type { TaskLogLevel, TaskLogLine } from "../model/task-log.ts";

export interface TaskLogFilter {
  /** The number of the attempt; left out: the newest that logged something. */
  readonly attempt?: number;
  /** Those after the line of this number; left out: from the first that is kept. */
  readonly after?: number;
  /** 500 unless told, at most 2000. */
  readonly limit?: number;
}

export interface TaskLog {
  readonly taskId: string;
  /** Null: nothing was logged. */
  readonly attempt: number | null;
  /** Oldest first. */
  readonly lines: readonly TaskLogLine[];
  readonly count: number;
  /** How many older lines of this attempt are no longer kept. */
  readonly dropped: number;
  /** What to give as `after` to go on; null: there are no more now. */
  readonly next: number | null;
}
