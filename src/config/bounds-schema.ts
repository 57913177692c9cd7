import { BOUND_DESCRIPTIONS, BOUND_RANGES } from "../model/input/bounds-schema.ts";
import { numberIn, section } from "./option-kinds.ts";

function bound(name: keyof typeof BOUND_RANGES) {
  return numberIn(BOUND_RANGES[name]).nullable().exactOptional().describe(BOUND_DESCRIPTIONS[name]);
}

/** What callers may make whose key and agent set nothing else. */
export const bounds = section({
  maxActiveSchedules: bound("maxActiveSchedules"),
  minIntervalS: bound("minIntervalS"),
  horizonDays: bound("horizonDays"),
  scheduleTtlDays: bound("scheduleTtlDays"),
  maxSubmitsPerHour: bound("maxSubmitsPerHour"),
  maxOpenTasks: bound("maxOpenTasks"),
  maxDepth: bound("maxDepth"),
  maxDescendants: bound("maxDescendants"),
});
