import { invalidField, quoted } from "./input/field-checks.ts";

// As a part of a path `.` and `..` mean folders, however they are encoded. Half of a character has no encoding at all, and what
// controls a terminal or turns the direction of writing would let one agent look like another.
const AGENT_ID = /^(?!\.{1,2}$)(?!\s)[^\p{Cc}\p{Cs}\p{Zl}\p{Zp}\p{Bidi_Control}]{1,128}(?<!\s)$/u;
/** What the id of an agent is, as a sentence goes on after "must be". */
export const AGENT_ID_FORM =
  "1 to 128 characters of any script, without control or bidi characters and without spaces at its ends, but not . or .. alone";

/** The id as it is stored: what looks the same is the same, however it was typed (Unicode's NFC). Null: it cannot be one. */
export function toAgentId(given: unknown): string | null {
  if (typeof given !== "string" || given.length > GIVEN_LENGTH_MAX) return null;
  const id = given.normalize("NFC");
  return AGENT_ID.test(id) ? id : null;
}

/** The same for a field. Throws `invalid_field`. */
export function checkAgentId(given: unknown, field = "agentId"): string {
  const id = toAgentId(given);
  if (id !== null) return id;
  throw invalidField(field, `\`${field}\` must be ${AGENT_ID_FORM}, not ${quoted(given)}`);
}

/** Before it is normalised: 128 characters are at most twice as many units, and few are spelled with more than four. */
const GIVEN_LENGTH_MAX = 1_024;
