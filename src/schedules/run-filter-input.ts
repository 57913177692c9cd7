import { type Fields, invalidField, isObject, preview } from "../model/input/field-checks.ts";
import type { Page } from "../model/input/page-input.ts";
import { readFields } from "../model/input/read-fields.ts";
import {
  RUN_FILTER,
  RUN_PAGE_MAX,
  SCHEDULE_FILTER,
  UPCOMING_FILTER,
  UPCOMING_LIMIT_DEFAULT,
} from "../model/input/schedule-filters.ts";
import { RUN_REQUEST } from "../model/input/schedule-schema.ts";
import type { RunStatus } from "../model/run.ts";
import { SCHEDULE_PAGE_MAX, type ScheduleStatus } from "../model/schedule.ts";
import { parseScheduleCursor, type ScheduleCursor } from "./schedule-cursor.ts";
import type { UpcomingRange } from "./upcoming.ts";

export interface ParsedRunFilter extends Page {
  /** Milliseconds since 1970. */
  readonly since?: number;
  readonly status?: RunStatus;
}

/** Checks which runs the caller wants to see. Throws `invalid_field`. */
export function parseRunFilter(filter: Fields): ParsedRunFilter {
  const { since, ...fields } = readFields(RUN_FILTER, filter);
  return { limit: RUN_PAGE_MAX, ...fields, ...(since === undefined ? {} : { since: since * 1_000 }) };
}

export interface ParsedScheduleFilter {
  readonly status?: ScheduleStatus;
  readonly agent?: string;
  readonly limit: number;
  readonly cursor?: ScheduleCursor;
}

/** Checks which schedules the caller wants to see. Throws `invalid_field`. */
export function parseScheduleFilter(filter: Fields): ParsedScheduleFilter {
  const { agent, cursor, ...fields } = readFields(SCHEDULE_FILTER, filter);
  return {
    limit: SCHEDULE_PAGE_MAX,
    ...fields,
    ...(agent === undefined ? {} : { agent: agent.normalize("NFC") }),
    ...(cursor === undefined ? {} : { cursor: parseScheduleCursor(cursor) }),
  };
}

const UPCOMING_MS = 7 * 24 * 60 * 60 * 1_000;

/** Checks which due times the caller wants to see. Throws `invalid_field`. */
export function parseUpcomingFilter(filter: Fields, now: number): UpcomingRange {
  const {
    per_schedule: perSchedule,
    limit = UPCOMING_LIMIT_DEFAULT,
    ...range
  } = readFields(UPCOMING_FILTER, filter);
  // Due times in the past have runs instead.
  const from = Math.max(range.from ?? now, now);
  const to = range.to ?? from + UPCOMING_MS;
  if (to < from) throw invalidField("to", "`to` must not be before `from`, nor before now");
  return { from, to, limit, ...(perSchedule === undefined ? {} : { perSchedule }) };
}

/** Checks the mode of a run that the caller requests now. Left out: `force`. */
export function parseRunMode(options: unknown): "force" | "due" {
  const given = options ?? {};
  if (!isObject(given)) {
    throw invalidField("mode", `what to run is an object like {"mode": "due"}, not ${preview(given)}`);
  }
  return readFields(RUN_REQUEST, given).mode ?? "force";
}
