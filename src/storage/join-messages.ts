import type { TaskSpec } from "../model/task.ts";

/** The longest joined message, in characters: about what a task may take. */
export const JOINED_MAX = 1_000_000;

/** A message with the text of a later one added; null if they would be too long together, or one is no message. */
export function joinMessages(first: TaskSpec, later: TaskSpec): TaskSpec | null {
  if (first.work.kind !== "message" || later.work.kind !== "message") return null;
  const message = `${first.work.message}\n${later.work.message}`;
  return message.length > JOINED_MAX ? null : { ...first, work: { kind: "message", message } };
}
