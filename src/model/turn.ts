import type { TaskWork } from "./task.ts";

/** How many turns of a session are read at most. */
export const TURNS_MAX = 200;
/** How many tasks of a session are looked through for them, the newest first: others fail, or are of another agent. */
export const TURNS_LOOKED_AT = 500;
/** What turns may take together, as they are stored; older ones are left out. */
export const TURNS_BYTES_MAX = 1_048_576;

/** A task of a session that is done: what was asked, and what the answer was. */
export interface Turn {
  readonly taskId: string;
  readonly work: TaskWork;
  readonly result: unknown;
}
