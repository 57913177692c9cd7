import { DEBOUNCE_WINDOWS_MAX, DEFAULT_STEER_MS, SESSION_ENDS } from "../../../model/session.ts";
import type { TaskSpec } from "../../../model/task.ts";
import { JOINED_MAX, rightsOf } from "../../join-messages.ts";
import type { SendParams, SentMessage } from "../../storage.ts";
import { tooManySessions } from "../../too-many-sessions.ts";
import type { PostgresDatabase } from "../connection/database.ts";
import { orBoundExceeded } from "../connection/errors.ts";
import { readSql } from "../connection/sql-file.ts";
import { type CancelledJson, signalCancelled, toEndedTask } from "../tasks/cancel-open-tasks.ts";
import { type InsertedRow, toInserted } from "../tasks/insert-tasks.ts";
import { PREEMPT } from "../tasks/preempt-tasks.ts";
import { RELEASED_MAX } from "../tasks/settle-moves.ts";
import { toTaskRow } from "../tasks/task-forms.ts";
import { isUnsettled, turnOf } from "./settle-sessions.ts";

/** Inserts a message. */
export async function sendMessage(db: PostgresDatabase, params: SendParams): Promise<SentMessage> {
  const {
    task,
    mode,
    maxConcurrent,
    maxSessions = null,
    defaults,
    steerMs = DEFAULT_STEER_MS,
    bounds,
  } = params;
  if (task.session === null) throw new Error("A message goes to a session.");
  const message = messageOf(task.spec);
  const [row] = await db
    .write<SentRow>({
      name: "send_message",
      text: "select * from send_message($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
      values: [
        JSON.stringify([{ ...toTaskRow(task), spec: specText(task.spec), rights: rightsText(task.spec) }]),
        mode,
        maxConcurrent,
        JSON.stringify(defaults),
        message === null ? null : inner(message),
        message?.length ?? null,
        maxSessions,
        steerMs,
        bounds === undefined ? null : JSON.stringify(bounds),
      ],
    })
    .catch((error) => {
      throw orBoundExceeded(error);
    });
  if (row === undefined) throw tooManySessions(maxSessions ?? 0);
  if (row.refused_cap !== null) {
    return { refused: { waiting: Number(row.refused_waiting), cap: row.refused_cap } };
  }
  signalCancelled(db, row.cancelled);
  db.signal({ kind: "events" });
  db.signal({ kind: "work" });
  db.signal({ kind: "due" });
  const cancelled = row.cancelled.map(toEndedTask);
  return { refused: null, task: toInserted(row), merged: row.merged, cancelled };
}

interface SentRow extends InsertedRow {
  readonly merged: boolean;
  readonly cancelled: CancelledJson[];
  /** Null unless the message was refused, as is the next one. */
  readonly refused_waiting: number | null;
  readonly refused_cap: number | null;
}

function messageOf({ work }: TaskSpec): string | null {
  return work.kind === "message" ? work.message : null;
}

/**
 * The spec as JSON text, with the rights of the message at the beginning and its text at the very end. So the database can compare
 * the former, and append to the latter, without parsing the spec: its JSON parser refuses some characters.
 */
function specText(spec: TaskSpec): string {
  const { work, createdBy, ...rest } = spec;
  if (work.kind !== "message") return JSON.stringify(spec);
  const { message, ...kind } = work;
  const rights = rightsOf(spec);
  return JSON.stringify({
    ...rights,
    ...(createdBy === undefined ? {} : { createdBy: { ...rights.createdBy, ...createdBy } }),
    ...rest,
    work: { ...kind, message },
  });
}

/** The beginning of `specText` that names the rights. More about the maker may follow. */
function rightsText(spec: TaskSpec): string {
  return JSON.stringify(rightsOf(spec)).replace(spec.createdBy === undefined ? /\}$/ : /\}\}$/, "");
}

/** Admission does not limit messages: their session does. */
export const NO_LIMIT = Number.MAX_SAFE_INTEGER;

/** What follows the message in `specText`. */
const AFTER_MESSAGE = '"}}';

/** Whether a task `t` has the rights of the message: its text begins with them, and names no others. */
const HAS_SAME_RIGHTS = `starts_with(t.spec, p_task ->> 'rights')
     and substr(t.spec, length(p_task ->> 'rights') + 1, 12) !~ '^,?"(createdBy|within|reach)"'`;

/** A message as it is between the quotes of JSON text. */
function inner(message: string): string {
  return JSON.stringify(message).slice(1, -1);
}

export const SEND_FUNCTIONS = readSql(new URL("./send-message.sql", import.meta.url), {
  INTERRUPTED: SESSION_ENDS.interrupted,
  DROPPED: SESSION_ENDS.dropped,
  IS_UNSETTLED: isUnsettled("s"),
  IS_READY_TURN: turnOf("t", "parked", "in"),
  NO_LIMIT,
  RELEASED_MAX,
  PREEMPT,
  AFTER_MESSAGE_LENGTH: AFTER_MESSAGE.length,
  AFTER_MESSAGE,
  HAS_SAME_RIGHTS,
  DEBOUNCE_WINDOWS_MAX,
  JOINED_MAX,
});
