import type { Task } from "../../model/task.ts";
import type { TaskState } from "../../model/task-state.ts";
import { styled, styledState } from "../terminal/style.ts";
import { tableLines } from "./table.ts";
import { workOrError } from "./task-text.ts";
import { shownAgo, shownSpan } from "./times.ts";

/** Tasks as a table, in the order given. */
export function tasksTable(
  tasks: readonly Task[],
  { now, width }: { readonly now: number; readonly width: number | undefined },
): string[] {
  return tableLines(
    [
      { title: "TASK" },
      { title: "STATE", style: (text) => styledState(text as TaskState) },
      { title: "AGENT", shrinksTo: 8 },
      { title: "PRIO", align: "right" },
      { title: "CREATED" },
      { title: "TOOK", align: "right" },
      { title: "WHAT", shrinksTo: 12, style: (text) => (text.startsWith("✗") ? styled("red", text) : text) },
    ],
    tasks.map((task) => [
      task.taskId,
      task.state,
      task.agentId,
      String(task.priority),
      shownAgo(task.createdAt, now),
      task.latencyMs === undefined ? "" : shownSpan(task.latencyMs),
      workOrError(task),
    ]),
    { width },
  );
}
