import { ownLength } from "../model/own-json.ts";

/** What was made of a text of this length takes some milliseconds to read or to write, whatever it is. */
const LARGE_LENGTH = 65_536;

/** Whether it came from outside and is large. */
export function isLargeInput(input: object): boolean {
  return (ownLength(input) ?? 0) >= LARGE_LENGTH;
}

/** Between two steps that look at all of what was handed in: where that is large, other work comes first. */
export async function letOthersThrough(input: object): Promise<void> {
  if (isLargeInput(input)) await new Promise((resolve) => setImmediate(resolve));
}
