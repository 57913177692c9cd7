import { isDeeperThan } from "./json-depth.ts";

/** How long the texts were that values were parsed from which nobody but Rota has. */
const lengths = new WeakMap<object, number>();

/**
 * Parses JSON that came from outside and remembers that nobody else has the value: it is JSON already, it does not change
 * under our hands, and so it need not be copied before it is kept. Not remembered where it is nested deeper than `depthMax`.
 */
export function parseOwnJson(text: string, depthMax: number): unknown {
  const value: unknown = JSON.parse(text);
  if (typeof value === "object" && value !== null && !isDeeperThan(depthMax, text)) {
    lengths.set(value, text.length);
  }
  return value;
}

/** How long the text was that `value` was parsed from, or is a part of; undefined: it may be somebody else's. */
export function ownLength(value: object): number | undefined {
  return lengths.get(value);
}

/** `part` has only what is in `whole`, and perhaps texts of our own: it is as much ours. */
export function keepOwn<Part extends object>(whole: object, part: Part): Part {
  const length = lengths.get(whole);
  if (length !== undefined) lengths.set(part, length);
  return part;
}
