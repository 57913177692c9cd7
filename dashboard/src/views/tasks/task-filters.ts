import type { RotaEvent, TaskFilter, TaskState } from "../../../../src/client/index.ts";
import { isEnded } from "../../parts/task-text.ts";
import type { Filters } from "../../parts/use-filters.ts";

/** Parameters of the page, the same as of `GET /tasks`. New filters of the server are added here. */
export const TASK_FILTERS = {
  state: undefined,
  agentId: undefined,
  lane: undefined,
  priority: ["critical", "high", "normal", "low"],
  sessionKey: undefined,
  batchId: undefined,
  scheduleId: undefined,
  /** A time, or a span back from now: a link to the last hour always shows the last hour. */
  from: undefined,
  to: undefined,
  q: undefined,
  order: ["oldest", "completed"],
  /** Of the page alone, for the loaded rows: by the time that they ran, and grouped by a key of their metadata. */
  sort: ["run"],
  group: undefined,
} as const;

export type TaskFilters = Filters<typeof TASK_FILTERS>;
/** Filters that are chips. The others have controls of their own. */
export type TaskFilterName = Exclude<keyof typeof TASK_FILTERS, "q" | "order" | "sort">;

/** The spans for `from`, by their name in the address. */
export const RANGES: Readonly<Record<string, { readonly label: string; readonly ms: number }>> = {
  "15m": { label: "last 15 min", ms: 900_000 },
  "1h": { label: "last hour", ms: 3_600_000 },
  "6h": { label: "last 6 h", ms: 21_600_000 },
  "24h": { label: "last 24 h", ms: 86_400_000 },
  "7d": { label: "last 7 days", ms: 604_800_000 },
  "30d": { label: "last 30 days", ms: 2_592_000_000 },
};

export const FILTER_LABELS: Readonly<Record<TaskFilterName, string>> = {
  state: "State",
  agentId: "Agent",
  lane: "Lane",
  priority: "Priority",
  sessionKey: "Session",
  batchId: "Batch",
  scheduleId: "Schedule",
  from: "Created",
  to: "Before",
  group: "Group by",
};

/** Parameters that choose no tasks. */
const ARRANGING = ["order", "sort", "group"];

/** How many filters there are that tasks have to match. */
export function countFilters(filters: TaskFilters): number {
  return Object.keys(filters).filter((name) => !ARRANGING.includes(name)).length;
}

/** Filters that users want often. */
export const TASK_TABS: readonly { readonly label: string; readonly states: readonly TaskState[] }[] = [
  { label: "All", states: [] },
  { label: "Waiting", states: ["queued", "delayed", "waiting_dependency"] },
  { label: "Running", states: ["running", "assigned"] },
  { label: "Failed", states: ["failed"] },
  { label: "Done", states: ["done"] },
  { label: "Cancelled", states: ["cancelled", "rejected"] },
];

function statesOf(tab: string): string {
  return TASK_TABS.find(({ label }) => label === tab)?.states.join(",") ?? "";
}

/** The values of the tabs in the URL. */
export const WAITING = statesOf("Waiting");
export const RUNNING = statesOf("Running");

/** The list of tasks with these filters. */
export function tasksHref(filters: TaskFilters): string {
  return `/tasks?${new URLSearchParams(filters)}`;
}

/** The query for the server. The server refuses wrong values. */
export function toQuery(filters: TaskFilters, now: number): TaskFilter {
  const { scheduleId, from, sort: _sort, group: _group, ...rest } = filters;
  const range = from === undefined ? undefined : RANGES[from];
  return {
    ...rest,
    ...(scheduleId === undefined
      ? {}
      : { scheduleId: /^\d+$/.test(scheduleId) ? Number(scheduleId) : scheduleId }),
    ...(from === undefined
      ? {}
      : { from: range === undefined ? from : new Date(now - range.ms).toISOString() }),
  } as TaskFilter;
}

/** Whether an event may affect the list. Fields that events do not contain, such as a priority, count as matching. */
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

/** Whether an event is about a task that is new at the top of the list. */
export function isNewRow(filters: TaskFilters, event: RotaEvent): boolean {
  const { state, q, to, order } = filters;
  const { type, taskId, batchId, timestamp } = event;
  const isFirst =
    order === undefined
      ? type === "task.created"
      : order === "completed" && type !== "batch.completed" && isEnded(event.state);
  return (
    isFirst &&
    mayConcern(filters, event) &&
    (state === undefined || state.split(",").includes(event.state)) &&
    (q === undefined || taskId.startsWith(q) || batchId === q) &&
    (to === undefined || timestamp < to)
  );
}
