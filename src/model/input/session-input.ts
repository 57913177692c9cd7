import { RotaError } from "../errors.ts";
import {
  DROP_POLICIES,
  type DropPolicy,
  SESSION_MODES,
  SESSION_RANGES,
  type SessionMode,
} from "../session.ts";
import { type Fields, insteadOf, isObject, withoutNulls } from "./field-checks.ts";
import { agentId, anyLane, boolean, callbackUrl, choice, filledText, laneName, number } from "./kinds.ts";
import { LIMIT_DEFAULT, PAGE, type Page } from "./page-input.ts";
import { readChanges, readFields } from "./read-fields.ts";
import { optional, required, type Schema } from "./schema.ts";

const MODES =
  "`queue` or `followup`: it waits for those before it; `interrupt`: it replaces them; `steer`: the running task may take it; `collect`: those after it are added to it until it starts.";

/** A message to a session. */
export const MESSAGE = {
  name: "SessionMessage",
  noun: "message",
  description: "A message to a session.",
  fields: {
    message: required(filledText(), {
      description:
        "The text. `/stop` and `/stopall` alone, in any case, do not reach the agent: they end tasks.",
    }),
    agentId: optional(agentId(), {
      description: "The agent that gets the message.",
      default: "the agent of the last message, else `index`",
      flag: "--agent <id>",
    }),
    lane: optional(anyLane(), {
      description: "The lane that it runs in.",
      default: "the lane of the last message, else that of the agent, else `main`",
      flag: "--lane <name>",
    }),
    mode: optional(choice(SESSION_MODES), {
      description: `What it does while others of the session run or wait. ${MODES}`,
      default: "the mode of the session",
      flag: "--mode <mode>",
    }),
    maxConcurrent: optional(number(SESSION_RANGES.maxConcurrent), {
      description: "How many tasks of the session may run at once; stays on the session.",
    }),
    callbackUrl: optional(callbackUrl(), {
      description:
        "URL that receives a `POST` of the task when it has ended, also if the message was dropped. Merged messages use the URL of the first.",
      flag: "--callback <url>",
    }),
  },
  examples: [
    { message: "Where is my parcel?", agentId: "support" },
    { message: "hello", lane: "main", maxConcurrent: 3 },
    { message: "Skip the last part", mode: "steer" },
    { message: "/stop" },
  ],
} as const satisfies Schema;

/** A message over HTTP, with options for the response. */
export const MESSAGE_REQUEST = {
  ...MESSAGE,
  fields: {
    ...MESSAGE.fields,
    wait: optional(boolean(), {
      description: "True: respond with the whole task once it has ended.",
    }),
    cancelOnDisconnect: optional(boolean(), {
      description:
        "True: if the caller that waits or reads its events disconnects, cancel the task, unless other messages are merged into it.",
    }),
  },
  examples: [
    ...MESSAGE.examples,
    { message: "No, the other one", mode: "interrupt", wait: true, cancelOnDisconnect: true },
  ],
} as const satisfies Schema;

const TOKENS = { min: 0, max: Number.MAX_SAFE_INTEGER } as const;

/** The changes of a session. */
export const SESSION_CHANGES = {
  name: "SessionChanges",
  noun: "session",
  isChanges: true,
  description: "Fields that are left out stay; null resets a field to the configuration.",
  fields: {
    agentId: optional(agentId(), { description: "The agent that gets its messages.", flag: "--agent <id>" }),
    lane: optional(laneName(), { description: "The lane that they run in.", flag: "--lane <name>" }),
    mode: optional(choice(SESSION_MODES), {
      description: `What a message does while others of the session run or wait. ${MODES}`,
      flag: "--mode <mode>",
    }),
    cap: optional(number(SESSION_RANGES.cap), {
      description: "How many messages may wait.",
      flag: "--cap <number>",
    }),
    drop: optional(choice(DROP_POLICIES), {
      description:
        "Which message goes when it is full: the `old` one that has waited longest, or the `new` one.",
      flag: "--drop <policy>",
    }),
    debounceMs: optional(number(SESSION_RANGES.debounceMs), {
      description: "Messages within this time of each other are merged into one task.",
      flag: "--debounce <span>",
    }),
    maxConcurrent: optional(number(SESSION_RANGES.maxConcurrent), {
      description: "How many of its tasks may run at once.",
      flag: "--max-concurrent <number>",
    }),
    tokens: optional(number(TOKENS), {
      description: "How many tokens of its context are used.",
      flag: "--tokens <number>",
    }),
    contextWindow: optional(number({ ...TOKENS, min: 1 }), {
      description: "How many tokens its context can hold.",
      flag: "--context-window <number>",
    }),
  },
  examples: [
    { mode: "interrupt", debounceMs: 0 },
    { agentId: "support", lane: "main", cap: 3, drop: "new", maxConcurrent: 3 },
    { tokens: 130_000, contextWindow: 200_000, cap: null },
  ],
} as const satisfies Schema;

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
  readonly callbackUrl: string | undefined;
}

/** Parses a message to a session. Throws `invalid_field`. */
export function parseSessionMessage(given: unknown): ParsedMessage {
  const {
    message,
    agentId,
    lane,
    mode = null,
    maxConcurrent = null,
    callbackUrl,
  } = readFields(MESSAGE, asFields(given, A_MESSAGE));
  return { message, agent: agentId, lane, mode, maxConcurrent, stop: stopWordIn(message), callbackUrl };
}

/** Whether a message ends tasks instead of reaching the agent. */
export function isStopWord(message: string): boolean {
  return stopWordIn(message) !== null;
}

/** Null: it is an ordinary message. */
function stopWordIn(message: string): StopScope | null {
  const found = STOP_WORD.exec(message.trim());
  if (found === null) return null;
  return found[1] === undefined ? "oldest" : "all";
}

/** A message over HTTP. */
export interface MessageRequest {
  readonly input: Fields;
  /** Respond only when its task has ended. */
  readonly wait: boolean;
  /** Cancel its task if the caller disconnects. */
  readonly cancelOnDisconnect: boolean;
}

export function parseMessageRequest(body: unknown): MessageRequest {
  const given = asFields(body, A_MESSAGE);
  const { wait = false, cancelOnDisconnect = false } = readFields(MESSAGE_REQUEST, given);
  const { wait: _wait, cancelOnDisconnect: _cancel, ...input } = withoutNulls(given);
  return { input, wait, cancelOnDisconnect };
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

/** Parses the changes of a session. Throws `invalid_field`. */
export function parseSessionChanges(given: unknown): ParsedSessionChanges {
  const { agentId, ...changes } = readChanges(SESSION_CHANGES, asFields(given, CHANGES));
  return { ...(agentId === undefined ? {} : { agent: agentId }), ...changes };
}

/** Parses the page of a list of sessions. Throws `invalid_field`. */
export function parseSessionPage(given: Fields): Page {
  return { limit: LIMIT_DEFAULT, ...readFields(PAGE, given) };
}

const A_MESSAGE = { what: "a message", example: '{"message": "hello"}' };
const CHANGES = { what: "the changes of a session", example: '{"maxConcurrent": 3}' };

function asFields(given: unknown, { what, example }: typeof A_MESSAGE): Fields {
  if (isObject(given)) return given;
  throw new RotaError("invalid_field", `${what} must be an object, like ${example}${insteadOf(given)}`);
}
