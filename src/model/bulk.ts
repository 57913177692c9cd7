import { TASK_STATES, type TaskState, TERMINAL_STATES } from "./task-state.ts";

export const BULK_ACTIONS = ["cancel", "retry", "delete"] as const;
export type BulkAction = (typeof BULK_ACTIONS)[number];

export const BULK_STATES = ["running", "done", "aborted"] as const;
export type BulkState = (typeof BULK_STATES)[number];

/** The states of tasks that each action can act on. */
export const BULK_TASK_STATES: Readonly<Record<BulkAction, readonly TaskState[]>> = {
  cancel: TASK_STATES.filter((state) => !(TERMINAL_STATES as readonly TaskState[]).includes(state)),
  retry: ["failed", "cancelled"],
  delete: TERMINAL_STATES,
};

/** The most tasks of one bulk action. */
export const BULK_LIMIT_MAX = 100_000;
/** The most task ids of one bulk action. */
export const BULK_IDS_MAX = 1_000;
/** How many bulk actions of one tenant run at once. */
export const BULKS_RUNNING_MAX = 10;
