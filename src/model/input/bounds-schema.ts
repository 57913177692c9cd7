import { type Bounds, DEFAULT_BOUNDS } from "../bounds.ts";
import type { NumberRange } from "./field-checks.ts";
import { changesObject, number } from "./kinds.ts";
import { type Kind, optional } from "./schema.ts";

/** The ranges of bounds. Each submit under a bound counts what there is, so that the largest ones are no larger than this. */
export const BOUND_RANGES = {
  maxActiveSchedules: { min: 0, max: 10_000 },
  minIntervalS: { min: 1, max: 366 * 24 * 60 * 60, unit: "seconds" },
  horizonDays: { min: 1, max: 36_500, unit: "days" },
  scheduleTtlDays: { min: 1, max: 36_500, unit: "days" },
  maxSubmitsPerHour: { min: 0, max: 10_000_000 },
  maxOpenTasks: { min: 0, max: 10_000 },
  maxDepth: { min: 0, max: 1_000 },
  maxDescendants: { min: 0, max: 10_000 },
} as const satisfies Record<keyof Bounds, NumberRange>;

/** What each bound limits, for people. */
export const BOUND_DESCRIPTIONS = {
  maxActiveSchedules: "How many schedules a caller may have, active or paused.",
  minIntervalS: "The shortest interval of recurring schedules, in seconds.",
  horizonDays: "How many days ahead the `runAt` of a task or the due time of a one-time schedule may be.",
  scheduleTtlDays: "After how many days schedules end: a later `until`, or none, becomes that.",
  maxSubmitsPerHour: "How many tasks and messages a caller may submit within 60 minutes.",
  maxOpenTasks: "How many tasks of a caller may wait or run.",
  maxDepth: "How deep a tree of tasks may be: how many tasks may be above a task that a caller submits.",
  maxDescendants: "How many tasks there may be below one root task.",
} as const satisfies Record<keyof Bounds, string>;

const field = (name: keyof Bounds) =>
  optional(number(BOUND_RANGES[name]), {
    description: BOUND_DESCRIPTIONS[name],
    default: `the next level's; ${DEFAULT_BOUNDS[name]} over MCP and with task tokens`,
  });

const BOUND_FIELDS = {
  maxActiveSchedules: field("maxActiveSchedules"),
  minIntervalS: field("minIntervalS"),
  horizonDays: field("horizonDays"),
  scheduleTtlDays: field("scheduleTtlDays"),
  maxSubmitsPerHour: field("maxSubmitsPerHour"),
  maxOpenTasks: field("maxOpenTasks"),
  maxDepth: field("maxDepth"),
  maxDescendants: field("maxDescendants"),
} as const;

/** What a key or an agent may make. Null: no bound. */
export function bounds(): Kind<Bounds> {
  return changesObject(BOUND_FIELDS);
}
