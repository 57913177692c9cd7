import { TASK_STATES, type TaskState, TERMINAL_STATES } from "./task-state.ts";

export const BULK_ACTIONS = ["cancel", "retry", "delete"] as const;
export type BulkAction = (typeof BULK_ACTIONS)[number];

export const BULK_STATES = ["running", "done", "aborted"] as const;
export type BulkState = (typeof BULK_STATES)[number];

/** The states of the tasks that an action has something to do with. */
export const BULK_TASK_STATES: Readonly<Record<BulkAction, readonly TaskState[]>> = {
  cancel: TASK_STATES.filter((state) => !(TERMINAL_STATES as readonly TaskState[]).includes(state)),
  retry: ["failed", "cancelled"],
  delete: TERMINAL_STATES,
};

/** How many tasks one bulk action may cover. */
export const BULK_LIMIT_MAX = 100_000;
/** How many tasks a bulk action may name by their ids. */
export const BULK_IDS_MAX = 1_000;
/** How many bulk actions of one tenant run at once. */
export const BULKS_RUNNING_MAX = 10;
