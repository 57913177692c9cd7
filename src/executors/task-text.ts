import type { ExecutorType } from "../model/executor-config.ts";
import type { Task } from "../model/task.ts";
import { PermanentError } from "./errors.ts";

/** The text of a task, for agents that take text. */
export function textOf({ kind, instruction, message }: Task, type: ExecutorType): string {
  const text = kind === "instruction" ? instruction : kind === "message" ? message : undefined;
  if (text !== undefined) return text;
  throw new PermanentError(
    `the ${type} executor does tasks with an \`instruction\` or a \`message\`; this one is of kind ${kind}`,
  );
}
