import { isDeepStrictEqual } from "node:util";
import type { CreatedBy } from "../model/provenance.ts";
import type { TaskSpec } from "../model/task.ts";

/**
 * The longest joined message, in characters. Each further message reads and writes all of it: with a million characters a hundred short
 * messages a second would take the whole process.
 */
export const JOINED_MAX = 65_536;

/**
 * A message with the text of a later one added. Null if they would be too long together, one is no message, or they have
 * different rights: the message of a caller must not run with the rights of another.
 */
export function joinMessages(first: TaskSpec, later: TaskSpec): TaskSpec | null {
  if (first.work.kind !== "message" || later.work.kind !== "message") return null;
  if (!isDeepStrictEqual(rightsOf(first), rightsOf(later))) return null;
  const message = `${first.work.message}\n${later.work.message}`;
  return message.length > JOINED_MAX ? null : { ...first, work: { kind: "message", message } };
}

/** What decides what the run of a message may do: not by which client it came. */
type Rights = Pick<TaskSpec, "within" | "reach"> & {
  readonly createdBy?: Pick<CreatedBy, "keyId" | "agentId">;
};

/** That part of a task alone. */
export function rightsOf({ createdBy, within, reach }: TaskSpec): Rights {
  return {
    ...(within === undefined ? {} : { within }),
    ...(reach === undefined ? {} : { reach }),
    ...(createdBy === undefined ? {} : { createdBy: { keyId: createdBy.keyId, agentId: createdBy.agentId } }),
  };
}
