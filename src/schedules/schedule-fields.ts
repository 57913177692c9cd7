import { checkAgentId } from "../model/agent-id.ts";
import { optionalChoice } from "../model/choice-input.ts";
import {
  type Fields,
  invalidField,
  optionalBoolean,
  optionalNumber,
  optionalObject,
  quoted,
  requiredText,
} from "../model/field-checks.ts";
import { CATCH_UPS, type CatchUp, OVERLAPS, type Overlap } from "../model/schedule.ts";
import { checkSessionKey } from "../model/session-key.ts";
import { TASK_BYTES_MAX, timeoutRange } from "../model/task-input.ts";
import { parseRetry, type RetryInput } from "./retry-input.ts";

/** What its owner says of a schedule besides when it is due. */
export interface ScheduleFields {
  readonly name: string | null;
  readonly agent: string;
  readonly message: string;
  readonly conversationId: string | null;
  readonly sessionKey: string | null;
  readonly deleteAfterRun: boolean;
  readonly retry: RetryInput;
  readonly overlap: Overlap;
  readonly catchUp: CatchUp;
  readonly usefulForMs: number | null;
  readonly timeoutMs: number | null;
}

/** What these are called by whoever hands them in. */
export const FIELD_NAMES = [
  "message",
  "agent",
  "name",
  "conversation_id",
  "session_key",
  "delete_after_run",
  "retry",
  "overlap",
  "catch_up",
  "useful_for",
  "timeout",
] as const;

export const DEFAULT_OVERLAP: Overlap = "skip";
export const DEFAULT_CATCH_UP: CatchUp = "one";

export interface FieldLimits {
  /** The longest `timeout` that may be asked for. */
  readonly timeoutMaxMs: number;
}

const NAME_LENGTH_MAX = 200;
const CONVERSATION_ID_LENGTH_MAX = 256;
/** Ten years: more is a slip of the finger, and `null` says for ever. */
const USEFUL_FOR = { min: 1, max: 10 * 365 * 24 * 60 * 60, unit: "seconds" } as const;

/** Checks those of the fields that are there. Throws `invalid_field`. */
export function readScheduleFields(given: Fields, { timeoutMaxMs }: FieldLimits): Partial<ScheduleFields> {
  const timeout = timeoutRange(timeoutMaxMs);
  const retry = optionalObject(given, "retry");
  const read = {
    name: orNull(given, "name", () => readLine(given, "name", NAME_LENGTH_MAX)),
    agent: readAgent(given),
    message: readMessage(given),
    conversationId: orNull(given, "conversation_id", () =>
      readLine(given, "conversation_id", CONVERSATION_ID_LENGTH_MAX),
    ),
    sessionKey: orNull(given, "session_key", (key) => checkSessionKey(key, "session_key")),
    deleteAfterRun: optionalBoolean(given, "delete_after_run"),
    retry: retry === undefined ? undefined : parseRetry(retry),
    overlap: optionalChoice(given, "overlap", OVERLAPS),
    catchUp: optionalChoice(given, "catch_up", CATCH_UPS),
    usefulForMs: orNull(given, "useful_for", () => toMs(optionalNumber(given, "useful_for", USEFUL_FOR))),
    timeoutMs: orNull(given, "timeout", () => optionalNumber(given, "timeout", timeout)),
  };
  return Object.fromEntries(
    Object.entries(read).filter(([, value]) => value !== undefined),
  ) as Partial<ScheduleFields>;
}

/** A field that null takes away. */
function orNull<Value>(given: Fields, field: string, read: (value: unknown) => Value) {
  const value = given[field];
  return value === undefined || value === null ? value : read(value);
}

function toMs(seconds: number | undefined): number | undefined {
  return seconds === undefined ? undefined : seconds * 1_000;
}

function readAgent({ agent }: Fields): string | undefined {
  return agent === undefined ? undefined : checkAgentId(agent, "agent");
}

/** As long as a task may be, since that is what becomes of it. */
function readMessage(given: Fields): string | undefined {
  if (given["message"] === undefined) return undefined;
  const message = requiredText(given, "message");
  if (message.includes("\0") || !message.isWellFormed()) {
    throw invalidField("message", "`message` must be text without NUL and without halves of characters");
  }
  if (Buffer.byteLength(JSON.stringify(message)) > TASK_BYTES_MAX) {
    throw invalidField("message", `\`message\` must take ${TASK_BYTES_MAX} bytes of JSON at most`);
  }
  return message;
}

/** A text that somebody sees in a line. */
function readLine(given: Fields, field: string, lengthMax: number): string {
  const text = given[field];
  const isLine = typeof text === "string" && /^[^\p{Cc}\p{Cs}]+$/u.test(text) && text.trim() !== "";
  if (isLine && [...text].length <= lengthMax) return text;
  throw invalidField(
    field,
    `\`${field}\` must be 1 to ${lengthMax} characters without control characters, not ${quoted(text)}`,
  );
}
