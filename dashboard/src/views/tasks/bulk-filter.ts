import type { BulkInput, TaskState } from "../../../../src/client/index.ts";
import { type TaskFilters, toQuery } from "./task-filters.ts";

export type BulkAction = BulkInput["action"];

/** The states that an action has something to do with. */
const STATES: Readonly<Record<BulkAction, readonly TaskState[]>> = {
  cancel: ["queued", "delayed", "waiting_dependency", "assigned", "running"],
  retry: ["failed", "cancelled"],
  delete: ["done", "failed", "cancelled", "rejected"],
};

/** So many tasks can be named in one request. */
export const IDS_MAX = 1_000;

export function isFor(action: BulkAction, state: TaskState): boolean {
  return STATES[action].includes(state);
}

/** Whether "all that match" means the same to the list and to the server, which knows no time of ending there. */
export function canSelectMatching({ order, from, to }: TaskFilters): boolean {
  return order !== "completed" || (from === undefined && to === undefined);
}

/** Whether the list may have tasks that the action has something to do with. */
export function isForList(action: BulkAction, { state }: TaskFilters): boolean {
  const wanted = state?.split(",") as TaskState[] | undefined;
  return wanted?.some((each) => isFor(action, each)) ?? true;
}

/** What an action covers of all that match. Without a filter it names the states: the server refuses an empty one. */
export function matchingInput(action: BulkAction, filters: TaskFilters, now: number): BulkInput {
  const { order: _order, ...filter } = toQuery(filters, now);
  return { action, filter: { ...filter, state: filter.state ?? STATES[action] } as BulkInput["filter"] & {} };
}
