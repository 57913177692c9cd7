import type { TaskWork } from "./task.ts";

/** The most turns of a session that are read. */
export const TURNS_MAX = 200;
/** How many tasks of a session are searched for turns, newest first: some have failed, or belong to another agent. */
export const TURNS_LOOKED_AT = 500;
/** The total size of turns, as stored; older ones are left out. */
export const TURNS_BYTES_MAX = 1_048_576;

/** A done task of a session, with its work and its result. */
export interface Turn {
  readonly taskId: string;
  readonly work: TaskWork;
  readonly result: unknown;
}
