import { isObject } from "../model/input/field-checks.ts";
import { shownStorageUrl } from "../model/storage-url.ts";
import { MASK } from "../model/text/mask.ts";

/** Names of what only its owner may read. A name that ends in `Env` is that of a variable, which is no secret. */
const SECRET =
  /secret|passw|passphrase|token|credential|cookie|authorization|(?:api|access|private|signing)[-_]?key|^(?:key|auth|bearer)$/i;

/** A part of the configuration as people may see it: with a mask in place of every secret. */
export function masked<Value>(value: Value, name = ""): Value {
  return mask(value, name) as Value;
}

/** Whether a text is what `masked` makes of one that holds a secret. */
export function isMask(text: string): boolean {
  return /^(?:https?:.*[?#])?…$/is.test(text);
}

function mask(value: unknown, name: string, isFreeForm = false): unknown {
  if (typeof value === "string") return maskText(value, name);
  if (Array.isArray(value)) return value.map((item) => mask(item, name, isFreeForm));
  if (!isObject(value)) return value;
  const entries = Object.entries(value);
  // Any header may carry a secret, and so may any variable that a program is handed.
  if (name === "headers" || name === "env") return Object.fromEntries(entries.map(([key]) => [key, MASK]));
  const isFree = isFreeForm || name === "request";
  // What a secret of a request is made of is secret, whatever it is called. Elsewhere names are also those of agents.
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

/** Many services take their key in the query. */
function maskUrl(text: string): string {
  return /^https?:\/\/[^?#]*[?#]/i.test(text) ? text.replace(/([?#]).*$/s, `$1${MASK}`) : text;
}
