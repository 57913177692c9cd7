import { ownLength } from "../model/text/own-json.ts";

/** A value parsed from a text of this length takes some milliseconds to read or write. */
const LARGE_LENGTH = 65_536;

/** Whether the input came from a client and is large. */
export function isLargeInput(input: object): boolean {
  return (ownLength(input) ?? 0) >= LARGE_LENGTH;
}

/** Call it between two steps that read the whole input: for large input it yields to other work. */
export async function letOthersThrough(input: object): Promise<void> {
  if (isLargeInput(input)) await new Promise((resolve) => setImmediate(resolve));
}
