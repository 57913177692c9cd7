import { DEFAULT_AGENT } from "../model/agent.ts";
import { insteadOf, invalidField, isObject } from "../model/input/field-checks.ts";
import { readFields } from "../model/input/read-fields.ts";
import { WRITS } from "../model/input/writ-schema.ts";
import { type InvalidWrit, parseWrit, type Writ } from "./writ.ts";
import { writsIn } from "./writs-in.ts";

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
  const { agent = DEFAULT_AGENT, session_key: key = null, ...given } = readFields(WRITS, input);
  const { conversation_id: conversationId = null, text } = given;
  return { agent, sessionKey: key, conversationId, writs: readWrits(text) };
}

/** A text without a writ results in one invalid writ. */
function readWrits(text: string): ParsedWrits["writs"] {
  const writs = writsIn(text);
  if (writs.length === 0) return [parseWrit(text)];
  if (writs.length <= WRITS_MAX) return writs;
  throw invalidField(
    "text",
    `\`text\` has ${writs.length} writs, and may have ${WRITS_MAX}: send several texts`,
  );
}
