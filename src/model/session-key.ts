import { invalidField, quoted } from "./input/field-checks.ts";

// In the path of a URL `.` and `..` mean folders, however they are encoded. A lone surrogate has no encoding at all.
const SESSION_KEY = /^(?!\.{1,2}$)[^\p{Cc}\p{Cs}]{1,256}$/u;
/** The form of a session key, as the rest of "must be …". */
const SESSION_KEY_FORM = "1 to 256 characters without control characters, but not . or .. alone";

/** Checks the key of a session. `field` is its name in the message. Throws `invalid_field`. */
export function checkSessionKey(key: unknown, field = "sessionKey"): string {
  if (typeof key === "string" && SESSION_KEY.test(key)) return key;
  throw invalidField(field, `\`${field}\` must be ${SESSION_KEY_FORM}, not ${quoted(key)}`);
}
