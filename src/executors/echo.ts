import type { Executor } from "./executor.ts";
import { inputOf } from "./task-input.ts";

/** Answers its input: what a task asked for, without the rest of it. */
export const echo: Executor = (task) => inputOf(task);
