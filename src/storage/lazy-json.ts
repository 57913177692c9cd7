import { rememberText } from "../model/text/json-text.ts";

/** A shorter text is parsed faster than it would be put off. */
export const LARGE_LENGTH = 16_384;

/** The bytes of the large fields of records. */
const sizes = new WeakMap<object, number>();

/**
 * The record with these fields, which are stored as JSON. A large one is parsed when it is first read: many callers read none of
 * them, and a mebibyte takes up to 50 ms. A copy of the record parses all.
 */
export function withLazyJson<Whole extends object, Name extends string & keyof Whole>(
  record: Omit<Whole, Name>,
  texts: Readonly<Record<Name, string | null>>,
): Whole {
  const whole = record as Whole;
  let bytes = 0;
  for (const name of Object.keys(texts) as Name[]) {
    const text = texts[name];
    if (text !== null && text.length >= LARGE_LENGTH) {
      bytes += Buffer.byteLength(text);
      defineLazily(whole, name, text);
    } else {
      whole[name] = text === null ? null : JSON.parse(text);
    }
  }
  if (bytes > 0) sizes.set(whole, bytes);
  return whole;
}

function defineLazily(whole: object, name: string, text: string): void {
  let value: unknown;
  const get = () => {
    if (value === undefined) {
      value = JSON.parse(text);
      rememberText(value, text);
    }
    return value;
  };
  Object.defineProperty(whole, name, { get, enumerable: true, configurable: true });
}

/** The bytes of the large fields of a record as it was read; 0 for a small one, and for a copy. */
export function largeBytesOf(record: object): number {
  return sizes.get(record) ?? 0;
}
