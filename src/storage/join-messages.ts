import { isDeepStrictEqual } from "node:util";
import type { TaskSpec } from "../model/task.ts";

/** The longest joined message, in characters: about what a task may take. */
export const JOINED_MAX = 1_000_000;

/**
 * A message with the text of a later one added. Null if they would be too long together, one is no message, or they have
 * different makers: the message of a caller must not run with the rights of another.
 */
export function joinMessages(first: TaskSpec, later: TaskSpec): TaskSpec | null {
  if (first.work.kind !== "message" || later.work.kind !== "message") return null;
  if (!isDeepStrictEqual(makerOf(first), makerOf(later))) return null;
  const message = `${first.work.message}\n${later.work.message}`;
  return message.length > JOINED_MAX ? null : { ...first, work: { kind: "message", message } };
}

/** Where a message comes from and what it may do. */
type Maker = Pick<TaskSpec, "createdBy" | "within" | "reach">;

/** That part of a task alone. */
export function makerOf({ createdBy, within, reach }: Maker): Maker {
  return {
    ...(createdBy === undefined ? {} : { createdBy }),
    ...(within === undefined ? {} : { within }),
    ...(reach === undefined ? {} : { reach }),
  };
}
