import { checkAgentId } from "../agent.ts";
import { RotaError } from "../errors.ts";
import { isLaneName, LANE_NAME_FORM } from "../lane.ts";
import {
  DROP_POLICIES,
  type DropPolicy,
  MESSAGE_FIELDS,
  SESSION_MODES,
  SESSION_RANGES,
  type SessionMode,
} from "../session.ts";
import { optionalChoice } from "./choice-input.ts";
import {
  checkKnown,
  type Fields,
  invalidField,
  isObject,
  type NumberRange,
  optionalBoolean,
  optionalNumber,
  requiredText,
  withoutNulls,
} from "./field-checks.ts";
import { type Page, parsePage } from "./page-input.ts";
import { optionalLane } from "./task-input.ts";

export type StopScope = "oldest" | "all";

/** A message that is only a stop word, in any case; chat gateways add the name of their bot: `/stop@name`. */
const STOP_WORD = /^\/stop(all)?(?:@\S+)?$/i;

export interface ParsedMessage {
  readonly message: string;
  readonly agent: string | undefined;
  readonly lane: string | undefined;
  /** Null: that of the session. */
  readonly mode: SessionMode | null;
  /** Null: it stays unchanged. */
  readonly maxConcurrent: number | null;
  /** Which tasks it stops, if it is a stop word; null: it is an ordinary message. */
  readonly stop: StopScope | null;
}

const REQUEST_FIELDS = [...MESSAGE_FIELDS, "wait", "cancelOnDisconnect"];

/** Parses a message to a session. Throws `invalid_field`. */
export function parseSessionMessage(given: unknown): ParsedMessage {
  const all = asFields(given, "a message");
  checkKnown(all, MESSAGE_FIELDS);
  const input = withoutNulls(all);
  const message = requiredText(input, "message");
  const agentId = input["agentId"];
  return {
    message,
    agent: agentId === undefined ? undefined : checkAgentId(agentId),
    lane: optionalLane(input),
    mode: optionalChoice(input, "mode", SESSION_MODES) ?? null,
    maxConcurrent: optionalNumber(input, "maxConcurrent", SESSION_RANGES.maxConcurrent) ?? null,
    stop: stopWordIn(message),
  };
}

/** Null: it is an ordinary message. */
export function stopWordIn(message: string): StopScope | null {
  const found = STOP_WORD.exec(message.trim());
  if (found === null) return null;
  return found[1] === undefined ? "oldest" : "all";
}

/** A message over HTTP, with options for the response. */
export interface MessageRequest {
  readonly input: Fields;
  /** Respond only when its task has ended. */
  readonly wait: boolean;
  /** Cancel its task if the caller disconnects. */
  readonly cancelOnDisconnect: boolean;
}

export function parseMessageRequest(body: unknown): MessageRequest {
  const all = asFields(body, "a message");
  checkKnown(all, REQUEST_FIELDS);
  const fields = withoutNulls(all);
  const { wait: _wait, cancelOnDisconnect: _cancel, ...input } = fields;
  return {
    input,
    wait: optionalBoolean(fields, "wait") ?? false,
    cancelOnDisconnect: optionalBoolean(fields, "cancelOnDisconnect") ?? false,
  };
}

/** The changes of a session; null resets a setting to its default. */
export interface ParsedSessionChanges {
  readonly agent?: string | null;
  readonly lane?: string | null;
  readonly mode?: SessionMode | null;
  readonly cap?: number | null;
  readonly drop?: DropPolicy | null;
  readonly debounceMs?: number | null;
  readonly maxConcurrent?: number | null;
  readonly tokens?: number | null;
  readonly contextWindow?: number | null;
}

const TOKENS: NumberRange = { min: 0, max: Number.MAX_SAFE_INTEGER };

/** The check of each field that can be changed. */
const CHECKS: Readonly<Record<string, (fields: Fields) => unknown>> = {
  agentId: ({ agentId }) => checkAgentId(agentId),
  lane: checkLane,
  mode: (fields) => optionalChoice(fields, "mode", SESSION_MODES),
  cap: (fields) => optionalNumber(fields, "cap", SESSION_RANGES.cap),
  drop: (fields) => optionalChoice(fields, "drop", DROP_POLICIES),
  debounceMs: (fields) => optionalNumber(fields, "debounceMs", SESSION_RANGES.debounceMs),
  maxConcurrent: (fields) => optionalNumber(fields, "maxConcurrent", SESSION_RANGES.maxConcurrent),
  tokens: (fields) => optionalNumber(fields, "tokens", TOKENS),
  contextWindow: (fields) => optionalNumber(fields, "contextWindow", { ...TOKENS, min: 1 }),
};

/** The fields of a session that can be changed. */
export const CHANGE_FIELDS: readonly string[] = Object.keys(CHECKS);

/** Parses the changes of a session. Throws `invalid_field`. */
export function parseSessionChanges(given: unknown): ParsedSessionChanges {
  const fields = asFields(given, "the changes of a session");
  checkKnown(fields, CHANGE_FIELDS);
  const changes = Object.entries(CHECKS)
    .filter(([field]) => fields[field] !== undefined)
    .map(([field, check]) => [
      field === "agentId" ? "agent" : field,
      fields[field] === null ? null : check(fields),
    ]);
  return Object.fromEntries(changes) as ParsedSessionChanges;
}

/** Parses the page of a list of sessions. Throws `invalid_field`. */
export function parseSessionPage(given: Fields): Page {
  checkKnown(given, ["limit", "cursor"]);
  return parsePage(given);
}

function asFields(given: unknown, what: string): Fields {
  if (isObject(given)) return given;
  throw new RotaError("invalid_field", `${what} must be an object`);
}

/** Stricter than for a task: a setting is stored, so that it must be a valid name of a lane. */
function checkLane({ lane }: Fields): string {
  if (isLaneName(lane)) return lane;
  throw invalidField("lane", `\`lane\` must be the name of a lane, ${LANE_NAME_FORM}`);
}
