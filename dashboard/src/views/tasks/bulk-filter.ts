import type { BulkInput, TaskState } from "../../../../src/client/index.ts";
import { type TaskFilters, toQuery } from "./task-filters.ts";

export type BulkAction = BulkInput["action"];

/** The states of tasks that an action can act on. */
const STATES: Readonly<Record<BulkAction, readonly TaskState[]>> = {
  cancel: ["queued", "delayed", "waiting_dependency", "assigned", "running"],
  retry: ["failed", "cancelled"],
  delete: ["done", "failed", "cancelled", "rejected"],
};

/** The most task ids in one request. */
export const IDS_MAX = 1_000;

export function isFor(action: BulkAction, state: TaskState): boolean {
  return STATES[action].includes(state);
}

/** Whether the filter of a bulk action can select the same tasks as the list. It cannot filter by the end of tasks. */
export function canSelectMatching({ order, from, to }: TaskFilters): boolean {
  return order !== "completed" || (from === undefined && to === undefined);
}

/** Whether the action applies to a state that the list can show. */
export function isForList(action: BulkAction, { state }: TaskFilters): boolean {
  const wanted = state?.split(",") as TaskState[] | undefined;
  return wanted?.some((each) => isFor(action, each)) ?? true;
}

/** The filter of a bulk action on all matching tasks. Without filters it names the states: the server refuses an empty filter. */
export function matchingInput(action: BulkAction, filters: TaskFilters, now: number): BulkInput {
  const { order: _order, ...filter } = toQuery(filters, now);
  return { action, filter: { ...filter, state: filter.state ?? STATES[action] } as BulkInput["filter"] & {} };
}
