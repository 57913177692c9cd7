import type { Task } from "../../model/task.ts";
import { oneLine } from "../terminal/display-text.ts";

/** What a task asks for, on one line. */
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

/** The same with why it failed in front, which is what somebody looks for then. */
export function workOrError(task: Task): string {
  return task.error === undefined ? workText(task) : `✗ ${oneLine(task.error)} · ${workText(task)}`;
}
