/** The states a task can be in. docs/tasks.md draws how they follow each other. */
export const TASK_STATES = [
  "waiting_dependency",
  "delayed",
  "queued",
  "assigned",
  "running",
  "done",
  "failed",
  "cancelled",
  "rejected",
] as const;

export type TaskState = (typeof TASK_STATES)[number];

/** States that a task leaves only by an explicit retry. */
export const TERMINAL_STATES = [
  "done",
  "failed",
  "cancelled",
  "rejected",
] as const satisfies readonly TaskState[];
export type TerminalState = (typeof TERMINAL_STATES)[number];

/** States that admission counts: accepted, and not yet started. */
export const WAITING_STATES = [
  "waiting_dependency",
  "delayed",
  "queued",
] as const satisfies readonly TaskState[];
export type WaitingState = (typeof WAITING_STATES)[number];

/** States in which an attempt holds a lease. */
export const HELD_STATES = ["assigned", "running"] as const satisfies readonly TaskState[];
export type HeldState = (typeof HELD_STATES)[number];

export function isTerminal(state: TaskState): state is TerminalState {
  return (TERMINAL_STATES as readonly TaskState[]).includes(state);
}
