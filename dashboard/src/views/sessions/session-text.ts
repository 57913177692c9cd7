import type { Session, Task } from "../../../../src/client/index.ts";
import type { Glyph } from "../../parts/state.tsx";
import { titleOf } from "../../parts/task-text.ts";

/** The sessions of schedules: there are many, and no person writes in them. */
const SCHEDULES = "schedule";
/** Sessions whose key does not begin with a word and a colon. */
const OTHERS = "other";

/** The kind of a session, from the beginning of its key: `chat:anna` is a `chat`. */
export function kindOf(key: string): string {
  return /^([a-z][\w-]{0,30}):/i.exec(key)?.[1]?.toLowerCase() ?? OTHERS;
}

/** Whether a session is listed. `kind` undefined: all but those of schedules. */
export function isListed(key: string, kind: string | undefined): boolean {
  if (kind === "all") return true;
  return kind === undefined ? kindOf(key) !== SCHEDULES : kindOf(key) === kind;
}

/** The activity of a session, as a glyph. Undefined: none. */
export function activityOf({ running, queued }: Session): Glyph | undefined {
  if (running > 0) return "running";
  return queued > 0 ? "queued" : undefined;
}

export function sessionHref(key: string, kind: string | undefined): string {
  return `/session?${new URLSearchParams({ key, ...(kind === undefined ? {} : { kind }) })}`;
}

/** The whole text of a message. */
export function saidIn(task: Task): string {
  return task.message ?? task.instruction ?? titleOf(task);
}

/** The text of a result, in the forms of agents and models. Undefined: it has none. */
export function answerIn(result: unknown): string | undefined {
  if (typeof result === "string") return result;
  if (typeof result !== "object" || result === null || !("text" in result)) return undefined;
  return typeof result.text === "string" ? result.text : undefined;
}

const ENDS: Readonly<Record<string, string>> = {
  stopped: "Stopped.",
  stale: "Not passed on: it was from before the session was stopped.",
  interrupted: "Interrupted by a later message.",
  session_reset: "Ended by a reset of the session.",
  queue_dropped: "Dropped: too many waited.",
};

/** Why a message has no reply. */
export function endIn({ state, error }: Task): string {
  const known = error === undefined ? undefined : ENDS[error];
  return known ?? error ?? (state === "cancelled" ? "Cancelled." : "It failed.");
}
