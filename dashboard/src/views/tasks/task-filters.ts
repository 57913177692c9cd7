import type { RotaEvent, TaskFilter, TaskState } from "../../../../src/client/index.ts";
import type { Filters } from "../../parts/use-filters.ts";

/** Parameters of the page, which are those of `GET /tasks`. What the server learns to filter by is added here. */
export const TASK_FILTERS = {
  state: undefined,
  agentId: undefined,
  lane: undefined,
  priority: ["critical", "high", "normal", "low"],
  sessionKey: undefined,
  batchId: undefined,
  scheduleId: undefined,
} as const;

export type TaskFilters = Filters<typeof TASK_FILTERS>;
export type TaskFilterName = keyof typeof TASK_FILTERS;

export const FILTER_LABELS: Readonly<Record<TaskFilterName, string>> = {
  state: "State",
  agentId: "Agent",
  lane: "Lane",
  priority: "Priority",
  sessionKey: "Session",
  batchId: "Batch",
  scheduleId: "Schedule",
};

/** Filters that users want often. */
export const TASK_TABS: readonly { readonly label: string; readonly states: readonly TaskState[] }[] = [
  { label: "All", states: [] },
  { label: "Waiting", states: ["queued", "delayed", "waiting_dependency"] },
  { label: "Running", states: ["running", "assigned"] },
  { label: "Failed", states: ["failed"] },
  { label: "Done", states: ["done"] },
  { label: "Cancelled", states: ["cancelled", "rejected"] },
];

/** Of the whole page, what the server is asked. */
export function toQuery(filters: TaskFilters): TaskFilter {
  const { scheduleId, ...rest } = filters;
  const isNumber = scheduleId !== undefined && /^\d+$/.test(scheduleId);
  return { ...rest, ...(isNumber ? { scheduleId: Number(scheduleId) } : {}) } as TaskFilter;
}

/** Whether an event may concern the list. What the event does not tell, such as a priority, may be so. */
export function mayConcern(filters: TaskFilters, event: RotaEvent): boolean {
  const { agentId, lane, sessionKey, batchId, scheduleId } = filters;
  return (
    (agentId === undefined || agentId === event.agentId) &&
    (lane === undefined || lane === event.lane) &&
    (sessionKey === undefined || sessionKey === event.sessionKey) &&
    (batchId === undefined || batchId === event.batchId) &&
    (scheduleId === undefined || scheduleId === String(event.scheduleId))
  );
}

/** Whether an event is of a task that is new to the list. */
export function isNewRow(filters: TaskFilters, event: RotaEvent): boolean {
  if (event.type !== "task.created" || !mayConcern(filters, event)) return false;
  return filters.state === undefined || filters.state.split(",").includes(event.state);
}
