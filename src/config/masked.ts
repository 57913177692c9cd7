import { isObject } from "../model/input/field-checks.ts";
import { shownStorageUrl } from "../model/storage-url.ts";
import { MASK } from "../model/text/mask.ts";

/** Names of fields with secret values. A field whose name ends in `Env` has the name of a variable, which is no secret. */
const SECRET =
  /secret|passw|passphrase|token|credential|cookie|authorization|(?:api|access|private|signing)[-_]?key|^(?:key|auth|bearer)$/i;

/** A part of the configuration as people may see it: with a mask in place of every secret. */
export function masked<Value>(value: Value, name = ""): Value {
  return mask(value, name) as Value;
}

/** Whether a text is what `masked` puts in place of a secret. */
export function isMask(text: string): boolean {
  return /^(?:https?:.*[?#])?…$/is.test(text);
}

function mask(value: unknown, name: string, isFreeForm = false): unknown {
  if (typeof value === "string") return maskText(value, name);
  if (Array.isArray(value)) return value.map((item) => mask(item, name, isFreeForm));
  if (!isObject(value)) return value;
  const entries = Object.entries(value);
  // Any header may contain a secret, and so may any environment variable of a program.
  if (name === "headers" || name === "env") return Object.fromEntries(entries.map(([key]) => [key, MASK]));
  const isFree = isFreeForm || name === "request";
  // Everything inside a secret field of a request is secret, whatever its name. Elsewhere a name may be that of an agent.
  const nameOf = (key: string) => (isFree && isSecret(name) ? name : key);
  return Object.fromEntries(entries.map(([key, inner]) => [key, mask(inner, nameOf(key), isFree)]));
}

function isSecret(name: string): boolean {
  return SECRET.test(name) && !name.endsWith("Env");
}

function maskText(text: string, name: string): string {
  if (name === "storage") return shownStorageUrl(text);
  if (isSecret(name)) return MASK;
  return maskUrl(text);
}

/** Masks the query: many services take their key there. */
function maskUrl(text: string): string {
  return /^https?:\/\/[^?#]*[?#]/i.test(text) ? text.replace(/([?#]).*$/s, `$1${MASK}`) : text;
}
