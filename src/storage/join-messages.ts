import type { TaskSpec } from "../model/task.ts";

/** The most that messages become together, in characters: what a task may take, about. */
export const JOINED_MAX = 1_000_000;

/** A message with the text of a later one added to it; null when they would be too long together, or are none. */
export function joinMessages(first: TaskSpec, later: TaskSpec): TaskSpec | null {
  if (first.work.kind !== "message" || later.work.kind !== "message") return null;
  const message = `${first.work.message}\n${later.work.message}`;
  return message.length > JOINED_MAX ? null : { ...first, work: { kind: "message", message } };
}
