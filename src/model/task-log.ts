/** The log lines of an attempt. */
export interface TaskLogLine {
  /** The number of the line within its attempt, from 1. Missing numbers were dropped. */
  readonly n: number;
  /** RFC 3339. */
  readonly at: string;
  readonly level: TaskLogLevel;
  readonly text: string;
}

export const TASK_LOG_LEVELS = ["debug", "info", "warn", "error"] as const;
export type TaskLogLevel = (typeof TASK_LOG_LEVELS)[number];

/** How many of the newest lines of an attempt are stored, and of how many attempts. The text of a line is cut to `lineBytes`. */
export const TASK_LOG_MAX = { lines: 2_000, bytes: 262_144, lineBytes: 4_096, attempts: 5 } as const;
