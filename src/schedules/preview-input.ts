import { insteadOf, invalidField, isObject } from "../model/input/field-checks.ts";
import { readFields } from "../model/input/read-fields.ts";
import { PREVIEW } from "../model/input/schedule-schema.ts";
import type { Rule } from "../model/rule.ts";
import { PREVIEW_COUNT } from "../model/schedule.ts";
import { rfc3339 } from "../model/text/rfc3339.ts";
import { END_OF_TIME_MS } from "./horizon.ts";
import type { When } from "./phrase.ts";
import { parseZonedSchedule } from "./zoned-schedule.ts";

export interface PreviewInput {
  readonly rule: Rule;
  /** When the schedule would be created. */
  readonly from: number;
  readonly count: number;
}

/** Parses the input of a preview. The defaults are the time and the zone of `when`. Throws `invalid_field`. */
export function parsePreviewInput(input: unknown, when: When): PreviewInput {
  if (!isObject(input)) {
    const example = '{"schedule": "every Mon at 09:00"}';
    throw invalidField("schedule", `a preview takes an object, like ${example}${insteadOf(input)}`);
  }
  const given = readFields(PREVIEW, input);
  const { count = PREVIEW_COUNT.default, from = when.now } = given;
  if (from < 0 || from >= END_OF_TIME_MS) {
    throw invalidField("from", `\`from\` must be in the years 1970 to 2999 of UTC, not ${rfc3339(from)}`);
  }
  return { rule: parseZonedSchedule(given, { now: from, tz: when.tz }), from, count };
}
