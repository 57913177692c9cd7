import { checkAgentId, DEFAULT_AGENT } from "../model/agent.ts";
import {
  checkKnown,
  type Fields,
  insteadOf,
  invalidField,
  isObject,
  quoted,
  withoutNulls,
} from "../model/input/field-checks.ts";
import { checkSessionKey } from "../model/session-key.ts";
import { readConversationId } from "./schedule-fields.ts";
import { type InvalidWrit, parseWrit, type Writ } from "./writ.ts";
import { writsIn } from "./writs-in.ts";

/** Far longer than a response of a model that contains writs. */
const TEXT_LENGTH_MAX = 65_536;
/** Writs are executed one after the other while the caller waits. */
const WRITS_MAX = 50;

export interface ParsedWrits {
  readonly agent: string;
  /** The session in which they were written; null: none. */
  readonly sessionKey: string | null;
  readonly conversationId: string | null;
  /** At least one. */
  readonly writs: readonly (Writ | InvalidWrit)[];
}

/** Checks the input and returns its writs and their agent. Throws `invalid_field`. */
export function parseWritInput(input: unknown): ParsedWrits {
  if (!isObject(input)) {
    const example = '{"agent": "research", "text": "/schedule in 1 hour: look again"}';
    throw invalidField("text", `writs take an object, like ${example}${insteadOf(input)}`);
  }
  checkKnown(input, ["agent", "text", "session_key", "conversation_id"]);
  const given = withoutNulls(input);
  const { agent, session_key: key } = given;
  return {
    agent: agent === undefined ? DEFAULT_AGENT : checkAgentId(agent, "agent"),
    sessionKey: key === undefined ? null : checkSessionKey(key, "session_key"),
    conversationId: readConversationId(given) ?? null,
    writs: readWrits(input),
  };
}

/** A text without a writ results in one invalid writ. */
function readWrits({ text }: Fields): ParsedWrits["writs"] {
  if (typeof text !== "string") {
    throw invalidField("text", `\`text\` must be a text with lines like /schedule list, not ${quoted(text)}`);
  }
  if (text.length > TEXT_LENGTH_MAX) {
    throw invalidField("text", `\`text\` has ${text.length} characters, and ${TEXT_LENGTH_MAX} are the most`);
  }
  const writs = writsIn(text);
  if (writs.length === 0) return [parseWrit(text)];
  if (writs.length <= WRITS_MAX) return writs;
  throw invalidField("text", `\`text\` has ${writs.length} writs, and ${WRITS_MAX} are the most`);
}
