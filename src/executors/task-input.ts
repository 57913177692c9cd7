import type { Task } from "../model/task.ts";

/** The work of a task, without its other fields. */
export function inputOf(task: Task): unknown {
  switch (task.kind) {
    case "instruction":
      return task.instruction;
    case "message":
      return task.message;
    case "custom":
      return task.payload;
    case "action": {
      const { action, tabId, ref, selector, params } = task;
      return { action, tabId, ref, selector, params };
    }
  }
}
