import { isObject } from "../model/input/field-checks.ts";
import { OPTIONS } from "./options.ts";

/** For these options 0 is a value of its own: never, at once, and no limit. */
const ZERO_MEANS = ["agingSec", "noExecutorSec", "maxRunningBytes"];

const NUMBERS = OPTIONS.filter(({ path, kind }) => path[0] === "scheduler" && kind === "number")
  .map(({ path }) => path.at(-1) ?? "")
  .filter((name) => !ZERO_MEANS.includes(name));

/**
 * The section `scheduler` without numbers that are 0, which count as left out: at the start they get their default, and at a
 * reload they keep their value.
 */
export function withoutZeros(scheduler: unknown): unknown {
  if (!isObject(scheduler)) return scheduler;
  const said = Object.entries(scheduler).filter(([name, value]) => value !== 0 || !NUMBERS.includes(name));
  return Object.fromEntries(said);
}
