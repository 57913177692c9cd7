import { isDeeperThan } from "./json-depth.ts";

/** Values that only Rota has a reference to, with the length of the JSON text they were parsed from. */
const lengths = new WeakMap<object, number>();

/**
 * Parses JSON of a request and remembers that only Rota has the value: no caller can change it, so that it need not be copied
 * before it is stored. Not remembered if it is nested deeper than `depthMax`.
 */
export function parseOwnJson(text: string, depthMax: number): unknown {
  const value: unknown = JSON.parse(text);
  if (typeof value === "object" && value !== null && !isDeeperThan(depthMax, text)) {
    lengths.set(value, text.length);
  }
  return value;
}

/** The same for a value that was read from the storage for this call alone. `length`: that of its text at most. */
export function markOwn<Value extends object>(value: Value, length: number): Value {
  lengths.set(value, length);
  return value;
}

/** The length of the text from which `value`, or the value around it, was parsed; undefined: a caller may hold a reference. */
export function ownLength(value: object): number | undefined {
  return lengths.get(value);
}

/** `part` contains only parts of `whole` and strings of Rota: only Rota has it if only Rota has `whole`. */
export function keepOwn<Part extends object>(whole: object, part: Part): Part {
  const length = lengths.get(whole);
  if (length !== undefined) lengths.set(part, length);
  return part;
}
