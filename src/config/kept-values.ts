import { isObject } from "../model/input/field-checks.ts";
import { OPTIONS } from "./options.ts";

/** Of these, 0 is a value like any other: never, at once, and no bound. */
const ZERO_MEANS = ["agingSec", "noExecutorSec", "maxRunningBytes"];

const NUMBERS = OPTIONS.filter(({ path, kind }) => path[0] === "scheduler" && kind === "number")
  .map(({ path }) => path.at(-1) ?? "")
  .filter((name) => !ZERO_MEANS.includes(name));

/**
 * The section `scheduler` without the numbers that are 0, which count as left out: at the start they have their default,
 * and when the configuration is read again while Rota runs they keep the value they have.
 */
export function withoutZeros(scheduler: unknown): unknown {
  if (!isObject(scheduler)) return scheduler;
  const said = Object.entries(scheduler).filter(([name, value]) => value !== 0 || !NUMBERS.includes(name));
  return Object.fromEntries(said);
}
