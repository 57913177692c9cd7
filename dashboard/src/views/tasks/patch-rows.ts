import type { InfiniteData } from "@tanstack/react-query";
import type { RotaEvent, Task, TaskPage } from "../../../../src/client/index.ts";
import { isEnded } from "../../parts/task-text.ts";

type Pages = InfiniteData<TaskPage, string | undefined>;

/** Puts what events say into the rows that are loaded. Pages without any of these tasks stay the same objects. */
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
    const tasks = page.tasks.map((task) => (byTask.get(task.taskId) ?? []).reduce(patchTask, task));
    return { ...page, tasks };
  });
  return isChanged ? { ...data, pages } : data;
}

/** What an event says of a task, and nothing that it does not. */
export function patchTask(task: Task, event: RotaEvent): Task {
  const { state, timestamp, error, type } = event;
  const { error: _error, completedAt: _completedAt, ...rest } = task;
  return {
    ...rest,
    state,
    ...(isEnded(state) ? { completedAt: timestamp } : {}),
    ...(error === undefined ? {} : { error }),
    ...(type === "task.started" && task.startedAt === undefined ? { startedAt: timestamp } : {}),
    ...(type === "task.retrying" && event.attempt !== undefined ? { retryCount: event.attempt } : {}),
    ...(event.retryAt === undefined ? {} : { runAt: event.retryAt }),
  };
}
