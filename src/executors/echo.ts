import type { Executor } from "./executor.ts";
import { inputOf } from "./task-input.ts";

/** Returns its input: the work of the task. */
export const echo: Executor = (task) => inputOf(task);
