import type { RotaEvent, Task, TaskRow, TaskRowPage } from "../../../../src/client/index.ts";
import { isEnded } from "../../parts/task-text.ts";
import type { InfiniteData } from "../../queries/query.ts";

type Pages = InfiniteData<TaskRowPage>;

/** Applies events to the loaded rows. Pages without any of these tasks stay the same objects. */
export function patchRows(data: Pages, events: readonly RotaEvent[]): Pages {
  const byTask = new Map<string, RotaEvent[]>();
  for (const event of events) {
    if (event.type === "batch.completed" || event.type === "task.created") continue;
    const own = byTask.get(event.taskId);
    if (own === undefined) byTask.set(event.taskId, [event]);
    else own.push(event);
  }
  let isChanged = false;
  const pages = data.pages.map((page) => {
    if (!page.tasks.some(({ taskId }) => byTask.has(taskId))) return page;
    isChanged = true;
    const tasks = page.tasks.map((row) => (byTask.get(row.taskId) ?? []).reduce(patchRow, row));
    return { ...page, tasks };
  });
  return isChanged ? { ...data, pages } : data;
}

function patchRow(row: TaskRow, event: RotaEvent): TaskRow {
  const { type, attempt = 0 } = event;
  const attempts = type === "task.started" ? Math.max(row.attempts, attempt) : row.attempts;
  return { ...patchState(row, event), attempts };
}

/** Applies only the fields that the event contains. */
export function patchTask(task: Task, event: RotaEvent): Task {
  return {
    ...patchState(task, event),
    ...(event.type === "task.retrying" && event.attempt !== undefined ? { retryCount: event.attempt } : {}),
    ...(event.retryAt === undefined ? {} : { runAt: event.retryAt }),
  };
}

/** The fields that rows have too. */
function patchState<Shown extends Task | TaskRow>(task: Shown, event: RotaEvent): Shown {
  const { state, timestamp, error, type } = event;
  const { error: _error, completedAt: _completedAt, ...rest } = task;
  return {
    ...(rest as Shown),
    state,
    ...(isEnded(state) ? { completedAt: timestamp } : {}),
    ...(error === undefined ? {} : { error }),
    ...(type === "task.started" && task.startedAt === undefined ? { startedAt: timestamp } : {}),
  };
}
