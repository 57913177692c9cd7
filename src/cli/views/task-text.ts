import type { Task } from "../../model/task.ts";
import { oneLine } from "../terminal/display-text.ts";

/** The work of a task, on one line. */
export function workText(task: Task): string {
  switch (task.kind) {
    case "action": {
      const target = task.selector ?? task.ref;
      return oneLine([task.action, target, task.tabId && `in tab ${task.tabId}`].filter(Boolean).join(" "));
    }
    case "instruction":
      return oneLine(task.instruction ?? "");
    case "message":
      return oneLine(task.message ?? "");
    case "custom":
      return oneLine(JSON.stringify(task.payload));
  }
}

/** The same after the error, if the task failed: that is what the reader looks for. */
export function workOrError(task: Task): string {
  return task.error === undefined ? workText(task) : `✗ ${oneLine(task.error)} · ${workText(task)}`;
}
