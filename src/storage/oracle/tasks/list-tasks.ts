import { STATE_AFTER } from "../../../model/event.ts";
import type { TaskRecord, TaskRowRecord } from "../../../model/task-record.ts";
import {
  cutShort,
  ROW_TEXT_MAX,
  TITLE_READ,
  TITLED_BYTES_MAX,
  titleOf,
} from "../../../model/text/task-title.ts";
import type { ListedTasks, ListTasksParams } from "../../storage.ts";
import { type OracleState, type OracleTask, toRecord } from "../state.ts";

export function listTasks(state: OracleState, params: ListTasksParams): ListedTasks {
  const { page, nextCursor } = findPage(state, params);
  const { bytesMax = Number.POSITIVE_INFINITY } = params;
  const tasks: TaskRecord[] = [];
  let bytes = 0;
  for (const { task } of page) {
    const own = JSON.stringify(task.spec).length + (JSON.stringify(task.result)?.length ?? 0);
    const before = page[tasks.length - 1];
    if (before !== undefined && bytes + own > bytesMax) return { tasks, bytes, nextCursor: before.position };
    tasks.push(toRecord(task));
    bytes += own;
  }
  return { tasks, bytes, nextCursor };
}

export function listTaskRows(
  state: OracleState,
  params: ListTasksParams,
): { rows: TaskRowRecord[]; nextCursor: number | null } {
  const { page, nextCursor } = findPage(state, params);
  return { rows: page.map(({ task }) => toRow(task)), nextCursor };
}

function toRow(task: OracleTask): TaskRowRecord {
  const { seq, id, agent, lane, priority, createdAt, startedAt, completedAt, usage, error } = task;
  const spec = JSON.stringify(task.spec);
  return {
    seq,
    id,
    title:
      Buffer.byteLength(spec) > TITLED_BYTES_MAX ? null : titleOf([...spec].slice(0, TITLE_READ).join("")),
    agent,
    lane,
    priority,
    state: task.state,
    createdAt,
    startedAt,
    completedAt,
    attempts: task.attempts.length,
    tokens: usage === null ? null : usage.inputTokens + usage.outputTokens,
    error: error === null ? null : cutShort([...error].slice(0, ROW_TEXT_MAX + 1).join("")),
  };
}

/** A task of a list, and its position in the order of the list. */
interface ListedTask {
  readonly task: OracleTask;
  readonly position: number;
}

function findPage(
  state: OracleState,
  params: ListTasksParams,
): { page: ListedTask[]; nextCursor: number | null } {
  const all = inOrder(state, params);
  params.onLooked?.(all.length);
  const listed = all.filter(({ task }) => fits(task, params));
  const page = listed.slice(0, params.limit);
  return { page, nextCursor: listed.length > page.length ? (page.at(-1)?.position ?? null) : null };
}

/** The tasks after the cursor, in order. */
function inOrder(state: OracleState, { order = "newest", cursor }: ListTasksParams): ListedTask[] {
  if (order === "completed") {
    const ended = state.tasks
      .flatMap((task) => endOf(state, task) ?? [])
      .sort((a, b) => (b.task.completedAt ?? 0) - (a.task.completedAt ?? 0) || b.position - a.position);
    const last = cursor === undefined ? undefined : state.events.find(({ seq }) => seq === cursor);
    if (cursor !== undefined && last === undefined) return [];
    return ended.filter(({ task: { completedAt }, position }) => {
      const at = completedAt ?? 0;
      return last === undefined || at < last.at || (at === last.at && position < last.seq);
    });
  }
  const all = state.tasks.map((task) => ({ task, position: task.seq }));
  if (order === "oldest") return all.filter(({ position }) => position > (cursor ?? 0));
  return all.filter(({ position }) => position < (cursor ?? Number.POSITIVE_INFINITY)).reverse();
}

/** The event of a task's end; null: it has not ended, or the log no longer has the event. */
function endOf(state: OracleState, task: OracleTask): ListedTask | null {
  if (task.completedAt === null) return null;
  const event = state.events.findLast(
    ({ taskSeq, type, at }) =>
      taskSeq === task.seq && at === task.completedAt && STATE_AFTER[type] === task.state,
  );
  return event === undefined ? null : { task, position: event.seq };
}

function fits(task: OracleTask, params: ListTasksParams): boolean {
  const { tenant, agent, states, priority, priorityMax, batch, lane, session, schedule, root, search } =
    params;
  const { from = 0, to = Number.POSITIVE_INFINITY } = params;
  const at = params.order === "completed" ? (task.completedAt ?? 0) : task.createdAt;
  return (
    task.tenant === tenant &&
    (agent === undefined || task.agent === agent) &&
    (states === undefined || states.includes(task.state)) &&
    (priority === undefined || task.priority === priority) &&
    (priorityMax === undefined || task.priority <= priorityMax) &&
    (batch === undefined || task.batch === batch) &&
    (lane === undefined || task.lane === lane) &&
    (session === undefined || task.session === session) &&
    (schedule === undefined || task.schedule === schedule) &&
    (root === undefined || task.spec.within?.rootTaskId === root) &&
    (search === undefined || isMeant(task, search)) &&
    at >= from &&
    at < to
  );
}

function isMeant({ id, batch, spec }: OracleTask, search: string): boolean {
  return id.startsWith(search) || (batch !== null && (batch === search || spec.key === search));
}
