import type { Task, TaskRow } from "../../../../src/client/index.ts";
import { Heading } from "../../parts/heading.ts";
import { titleOf } from "../../parts/task-text.ts";

/** A row that also has the metadata of its task. */
export interface GroupableRow extends TaskRow {
  readonly metadata?: Task["metadata"];
}

export type Entry = TaskRow | Heading;

/** The row of a whole task, for lists that need its metadata. */
export function rowOfTask(task: Task): GroupableRow {
  const { taskId, state, agentId, lane, priority, createdAt, startedAt, completedAt, error, usage } = task;
  const first = task.attempts[0]?.startedAt ?? startedAt;
  return {
    taskId,
    title: titleOf(task),
    state,
    agentId,
    lane,
    priority,
    createdAt,
    attempts: task.attempts.length,
    ...(first !== undefined && { startedAt: first }),
    ...(completedAt !== undefined && { completedAt }),
    ...(usage !== undefined && { tokens: usage.inputTokens + usage.outputTokens }),
    ...(error !== undefined && { error }),
    ...(task.metadata !== undefined && { metadata: task.metadata }),
  };
}

interface Arrangement {
  readonly sort: string | undefined;
  readonly group: string | undefined;
}

/** The loaded rows in the order in which the page shows them. Groups have the order of their first rows. */
export function arrange(
  rows: readonly GroupableRow[],
  { sort, group }: Arrangement,
  now: number,
): readonly Entry[] {
  const sorted =
    sort === undefined ? rows : rows.toSorted((one, other) => ranFor(other, now) - ranFor(one, now));
  if (group === undefined) return sorted;
  const groups = Map.groupBy(sorted, ({ metadata }) => textOf(metadata?.[group]));
  const known = [...groups].sort(([one], [other]) => Number(one === NONE) - Number(other === NONE));
  return known.flatMap(([value, members]) => [new Heading(value, members.length), ...members]);
}

/** The value of tasks without the key. They come last. */
export const NONE = "";

function textOf(value: unknown): string {
  if (value === undefined) return NONE;
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** Tasks that have not started come last. */
function ranFor({ startedAt, completedAt, state }: TaskRow, now: number): number {
  const isRunning = state === "running" || state === "assigned";
  if (startedAt === undefined || (completedAt === undefined && !isRunning)) return -1;
  return (completedAt === undefined ? now : Date.parse(completedAt)) - Date.parse(startedAt);
}
