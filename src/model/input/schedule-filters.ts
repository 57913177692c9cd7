import { RUN_STATUSES } from "../run.ts";
import { SCHEDULE_PAGE_MAX, SCHEDULE_STATUSES } from "../schedule.ts";
import { choice, name, number, text } from "./kinds.ts";
import { pageCursor, pageLimit } from "./page-input.ts";
import { SECONDS_MAX, secondsOrTime } from "./schedule-schema.ts";
import { type FilterSchema, optional } from "./schema.ts";

/** The most runs of a page. */
export const RUN_PAGE_MAX = 100;
export const UPCOMING_LIMIT = { min: 1, max: 2_000 } as const;
export const UPCOMING_LIMIT_DEFAULT = 100;

/** Which schedules to list. */
export const SCHEDULE_FILTER = {
  noun: "filter",
  refusesNull: true,
  fields: {
    status: optional(choice(SCHEDULE_STATUSES), {
      description: "`active`, `paused`, `completed` or `failed`.",
    }),
    agent: optional(name("the id of an agent"), { description: "Of this agent." }),
    limit: pageLimit({ max: SCHEDULE_PAGE_MAX, normally: SCHEDULE_PAGE_MAX }),
    cursor: optional(text(), {
      description: "`next_cursor` of the page before, or `start` for all by id, newest first.",
    }),
  },
} as const satisfies FilterSchema;

/** Which runs to list. */
export const RUN_FILTER = {
  noun: "filter",
  refusesNull: true,
  fields: {
    since: optional(number({ min: 0, max: SECONDS_MAX, unit: "seconds since 1970" }), {
      description: "Seconds since 1970: only those that started, ended or were written down not before.",
    }),
    status: optional(choice(RUN_STATUSES), {
      description: "`running`, `succeeded`, `failed`, `skipped` or `missed`.",
    }),
    limit: pageLimit({ max: RUN_PAGE_MAX, normally: RUN_PAGE_MAX }),
    cursor: pageCursor("next_cursor"),
  },
} as const satisfies FilterSchema;

/** Which due times to list. */
export const UPCOMING_FILTER = {
  noun: "filter",
  fields: {
    from: optional(secondsOrTime(), {
      description: "Seconds since 1970 or RFC 3339; in the past: now.",
      default: "now",
    }),
    to: optional(secondsOrTime(), {
      description: "Seconds since 1970 or RFC 3339.",
      default: "7 days after `from`",
    }),
    limit: optional(number(UPCOMING_LIMIT), {
      description: "1 to 2000.",
      default: String(UPCOMING_LIMIT_DEFAULT),
    }),
    per_schedule: optional(number(UPCOMING_LIMIT), {
      description: "Due times of one schedule at most, 1 to 2000.",
      default: "any number",
    }),
  },
} as const satisfies FilterSchema;
