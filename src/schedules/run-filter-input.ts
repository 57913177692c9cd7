import { optionalChoice } from "../model/input/choice-input.ts";
import {
  checkKnown,
  checkName,
  type Fields,
  invalidField,
  isObject,
  optionalNumber,
  optionalText,
  preview,
  withoutNulls,
} from "../model/input/field-checks.ts";
import { type Page, type PageRules, parsePage } from "../model/input/page-input.ts";
import { RUN_STATUSES, type RunStatus } from "../model/run.ts";
import { SCHEDULE_STATUSES, type ScheduleStatus } from "../model/schedule.ts";
import { parseScheduleCursor, SCHEDULE_PAGE_MAX, type ScheduleCursor } from "./schedule-cursor.ts";
import { optionalTime } from "./schedule-fields.ts";
import type { UpcomingRange } from "./upcoming.ts";

/** At most the end of the year 9999. Current times in milliseconds are larger, so that they are not taken for seconds. */
const SINCE = { min: 0, max: 253_402_300_799, unit: "seconds since 1970" } as const;
const PAGE: PageRules = { limitMax: 100, cursorName: "next_cursor" };

export interface ParsedRunFilter extends Page {
  /** Milliseconds since 1970. */
  readonly since?: number;
  readonly status?: RunStatus;
}

/** Checks which runs the caller wants to see. Throws `invalid_field`. */
export function parseRunFilter(filter: Fields): ParsedRunFilter {
  checkKnown(filter, ["since", "status", "limit", "cursor"]);
  const since = optionalNumber(filter, "since", SINCE);
  const status = optionalChoice(filter, "status", RUN_STATUSES);
  return {
    ...(since === undefined ? {} : { since: since * 1_000 }),
    ...(status === undefined ? {} : { status }),
    ...parsePage(filter, PAGE),
  };
}

export interface ParsedScheduleFilter {
  readonly status?: ScheduleStatus;
  readonly agent?: string;
  readonly limit: number;
  readonly cursor?: ScheduleCursor;
}

/** Checks which schedules the caller wants to see. Throws `invalid_field`. */
export function parseScheduleFilter(filter: Fields): ParsedScheduleFilter {
  checkKnown(filter, ["status", "agent", "limit", "cursor"]);
  const status = optionalChoice(filter, "status", SCHEDULE_STATUSES);
  const agent = checkName(filter, "agent", "the id of an agent")?.normalize("NFC");
  const cursor = optionalText(filter, "cursor");
  const limit = optionalNumber(filter, "limit", { min: 1, max: SCHEDULE_PAGE_MAX });
  return {
    ...(status === undefined ? {} : { status }),
    ...(agent === undefined ? {} : { agent }),
    ...(cursor === undefined ? {} : { cursor: parseScheduleCursor(cursor) }),
    limit: limit ?? SCHEDULE_PAGE_MAX,
  };
}

const UPCOMING_DAYS = 7;
const UPCOMING_LIMIT = { min: 1, max: 2_000 } as const;
const UPCOMING_LIMIT_DEFAULT = 100;

/** Checks which due times the caller wants to see. Throws `invalid_field`. */
export function parseUpcomingFilter(filter: Fields, now: number): UpcomingRange {
  checkKnown(filter, ["from", "to", "limit", "per_schedule"]);
  const given = withoutNulls(filter);
  // Due times in the past have runs instead.
  const from = Math.max(optionalTime(given, "from") ?? now, now);
  const to = optionalTime(given, "to") ?? from + UPCOMING_DAYS * 24 * 60 * 60 * 1_000;
  if (to < from) throw invalidField("to", "`to` must not be before `from`, nor before now");
  const limit = optionalNumber(given, "limit", UPCOMING_LIMIT) ?? UPCOMING_LIMIT_DEFAULT;
  const perSchedule = optionalNumber(given, "per_schedule", UPCOMING_LIMIT);
  return { from, to, limit, ...(perSchedule === undefined ? {} : { perSchedule }) };
}

/** Checks the mode of a run that the caller requests now. Left out: `force`. */
export function parseRunMode(options: unknown): "force" | "due" {
  const given = options ?? {};
  if (!isObject(given)) {
    throw invalidField("mode", `what to run is an object like {"mode": "due"}, not ${preview(given)}`);
  }
  checkKnown(given, ["mode"]);
  return optionalChoice(withoutNulls(given), "mode", ["force", "due"]) ?? "force";
}
