/** Shorter texts are serialized again faster than they are looked up. */
const KEPT_FROM = 16_384;

const texts = new WeakMap<object, string>();

/**
 * `JSON.stringify` of a value that does not change any more. Serializing a megabyte takes up to 40 ms, so the text of a large
 * value is cached: it is measured first and stored later.
 */
export function jsonText(value: unknown): string | undefined {
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const known = texts.get(value);
  if (known !== undefined) return known;
  const text = JSON.stringify(value);
  rememberText(value, text);
  return text;
}

/** Its text, if it is cached. */
export function knownText(value: object): string | undefined {
  return texts.get(value);
}

/** For `all`, which is `{ ...whole, ...more }`. If the text of `whole` is cached, so is its own. `whole` has no field of `more`. */
export function extendText(all: object, whole: object, more: object): void {
  const text = texts.get(whole);
  if (text !== undefined) rememberText(all, `${text.slice(0, -1)},${JSON.stringify(more).slice(1)}`);
}

/** For a value that was just parsed from its text, or written to it. */
export function rememberText(value: unknown, text: string): void {
  if (text.length >= KEPT_FROM && typeof value === "object" && value !== null) texts.set(value, text);
}
