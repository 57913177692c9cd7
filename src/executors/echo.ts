import type { Task } from "../model/task.ts";
import type { Executor } from "./executor.ts";

/** Answers its input: what a task asked for, without the rest of it. */
export const echo: Executor = (task) => inputOf(task);

function inputOf(task: Task): unknown {
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
