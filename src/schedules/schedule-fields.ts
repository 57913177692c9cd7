import { checkAgentId } from "../model/agent.ts";
import { optionalCallbackUrl } from "../model/callback-url.ts";
import { optionalChoice } from "../model/input/choice-input.ts";
import {
  type Fields,
  invalidField,
  optionalBoolean,
  optionalNumber,
  optionalObject,
  quoted,
} from "../model/input/field-checks.ts";
import { optionalPriority } from "../model/input/priority-input.ts";
import { optionalLane, timeoutRange } from "../model/input/task-input.ts";
import { jsonValue } from "../model/json-value.ts";
import { CATCH_UPS, type CatchUp, OVERLAPS, type Overlap, type ScheduleWork } from "../model/schedule.ts";
import { checkSessionKey } from "../model/session-key.ts";
import { parseRfc3339 } from "../model/text/rfc3339.ts";
import { parseRetry, type RetryInput } from "./retry-input.ts";
import { WORK_FIELDS } from "./schedule-work.ts";

/** The fields of a schedule that its owner sets, besides its due times. */
export interface ScheduleFields {
  readonly name: string | null;
  readonly agent: string;
  readonly work: ScheduleWork;
  readonly conversationId: string | null;
  readonly sessionKey: string | null;
  readonly deleteAfterRun: boolean;
  readonly retry: RetryInput;
  readonly overlap: Overlap;
  readonly catchUp: CatchUp;
  readonly usefulForMs: number | null;
  readonly timeoutMs: number | null;
  readonly lane: string | null;
  readonly priority: number | null;
  readonly metadata: Fields | null;
  readonly callbackUrl: string | null;
  readonly maxRuns: number | null;
  readonly untilAt: number | null;
  readonly pauseAfterFailures: number | null;
}

/** The names of these fields in the input. */
export const FIELD_NAMES = [
  ...WORK_FIELDS,
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
  "lane",
  "priority",
  "metadata",
  "callback_url",
  "max_runs",
  "until",
  "pause_after_failures",
] as const;

export const DEFAULT_OVERLAP: Overlap = "skip";
export const DEFAULT_CATCH_UP: CatchUp = "one";

export interface FieldLimits {
  /** The longest `timeout` that is allowed. */
  readonly timeoutMaxMs: number;
}

const NAME_LENGTH_MAX = 200;
const CONVERSATION_ID_LENGTH_MAX = 256;
/** At most ten years: more is most likely a typing error, and `null` means no limit. */
const USEFUL_FOR = { min: 1, max: 10 * 365 * 24 * 60 * 60, unit: "seconds" } as const;

/** More is most likely a typing error, and `null` means no limit. */
const MAX_RUNS = { min: 1, max: 1_000_000_000 } as const;
const PAUSE_AFTER_FAILURES = { min: 0, max: 1_000_000 } as const;
/** The end of the year 9999. Current times in milliseconds are larger, so that they are not taken for seconds. */
const SECONDS_MAX = 253_402_300_799;

/** Checks the fields that are set, except for the work. Throws `invalid_field`. */
export function readScheduleFields(
  given: Fields,
  { timeoutMaxMs }: FieldLimits,
): Partial<Omit<ScheduleFields, "work">> {
  const timeout = timeoutRange(timeoutMaxMs);
  const retry = optionalObject(given, "retry");
  const read = {
    name: orNull(given, "name", () => readLine(given, "name", NAME_LENGTH_MAX)),
    agent: readAgent(given),
    conversationId: readConversationId(given),
    sessionKey: orNull(given, "session_key", (key) => checkSessionKey(key, "session_key")),
    deleteAfterRun: optionalBoolean(given, "delete_after_run"),
    retry: retry === undefined ? undefined : parseRetry(retry),
    overlap: optionalChoice(given, "overlap", OVERLAPS),
    catchUp: optionalChoice(given, "catch_up", CATCH_UPS),
    usefulForMs: orNull(given, "useful_for", () => toMs(optionalNumber(given, "useful_for", USEFUL_FOR))),
    timeoutMs: orNull(given, "timeout", () => optionalNumber(given, "timeout", timeout)),
    lane: orNull(given, "lane", () => optionalLane(given)),
    priority: orNull(given, "priority", () => optionalPriority(given)),
    metadata: orNull(given, "metadata", () => readMetadata(given)),
    callbackUrl: orNull(given, "callback_url", () => optionalCallbackUrl(given, "callback_url")),
    maxRuns: orNull(given, "max_runs", () => optionalNumber(given, "max_runs", MAX_RUNS)),
    untilAt: orNull(given, "until", () => optionalTime(given, "until")),
    pauseAfterFailures: orNull(given, "pause_after_failures", () =>
      optionalNumber(given, "pause_after_failures", PAUSE_AFTER_FAILURES),
    ),
  };
  return Object.fromEntries(Object.entries(read).filter(([, value]) => value !== undefined)) as Partial<
    Omit<ScheduleFields, "work">
  >;
}

/** The id of the conversation on the agent's side: a text, or an integer, which is stored as text. */
export function readConversationId(given: Fields): string | null | undefined {
  return orNull(given, "conversation_id", (id) =>
    Number.isSafeInteger(id) ? String(id) : readLine(given, "conversation_id", CONVERSATION_ID_LENGTH_MAX),
  );
}

/** Reads a field that null removes. */
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

function readMetadata(given: Fields): Fields | undefined {
  const metadata = optionalObject(given, "metadata");
  return metadata === undefined ? undefined : (jsonValue(given, "metadata") as Fields);
}

/** A time, as seconds since 1970 or as RFC 3339. */
export function optionalTime(given: Fields, field: string): number | undefined {
  const time = given[field];
  if (time === undefined) return undefined;
  const text = time instanceof Date ? time.toJSON() : time;
  const isSeconds = typeof time === "number" && Number.isInteger(time);
  if (isSeconds && time >= 0 && time <= SECONDS_MAX) return time * 1_000;
  const moment = typeof text === "string" ? parseRfc3339(text) : null;
  if (moment !== null) return moment;
  throw invalidField(
    field,
    `\`${field}\` must be an integer of seconds since 1970, or an RFC 3339 time like "2030-01-31T09:00:00Z", not ${quoted(time)}`,
  );
}

/** Reads a text of one line. */
function readLine(given: Fields, field: string, lengthMax: number): string {
  const text = given[field];
  const isLine = typeof text === "string" && /^[^\p{Cc}\p{Cs}]+$/u.test(text) && text.trim() !== "";
  if (isLine && [...text].length <= lengthMax) return text;
  throw invalidField(
    field,
    `\`${field}\` must be 1 to ${lengthMax} characters without control characters, not ${quoted(text)}`,
  );
}
