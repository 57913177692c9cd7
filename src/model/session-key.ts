import { type Fields, invalidField, quoted } from "./input/field-checks.ts";

// As a part of a path `.` and `..` mean folders, however they are encoded, and half of a character has no encoding at all.
const SESSION_KEY = /^(?!\.{1,2}$)[^\p{Cc}\p{Cs}]{1,256}$/u;
/** What the key of a session is, as a sentence goes on after "must be". */
const SESSION_KEY_FORM = "1 to 256 characters without control characters, but not . or .. alone";

/** Refuses what cannot be the key of a session. `field` is what it came as. */
export function checkSessionKey(key: unknown, field = "sessionKey"): string {
  if (typeof key === "string" && SESSION_KEY.test(key)) return key;
  throw invalidField(field, `\`${field}\` must be ${SESSION_KEY_FORM}, not ${quoted(key)}`);
}

/** The same for a field that may be left out. */
export function optionalSessionKey(fields: Fields): string | undefined {
  const key = fields["sessionKey"];
  return key === undefined ? undefined : checkSessionKey(key);
}
