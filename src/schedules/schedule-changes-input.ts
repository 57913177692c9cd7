import { optionalChoice } from "../model/choice-input.ts";
import {
  checkKnown,
  type Fields,
  insteadOf,
  invalidField,
  isObject,
  optionalBoolean,
} from "../model/field-checks.ts";
import { FIELD_NAMES, type FieldLimits, readScheduleFields, type ScheduleFields } from "./schedule-fields.ts";
import { optionalWork } from "./schedule-work.ts";
import { checkZone } from "./zone.ts";

/** What somebody wants to change of a schedule: what is left out stays. */
export interface ParsedScheduleChanges {
  readonly fields: Partial<ScheduleFields>;
  readonly status: "active" | "paused" | undefined;
  /** As it was given: what it means depends on when it is said, and on the zone that the schedule has. */
  readonly schedule: unknown;
  readonly tz: string | undefined;
}

const KNOWN = ["schedule", "tz", "enabled", "status", ...FIELD_NAMES];

/** Checks what is to change of a schedule, but for a new `schedule`. Throws `invalid_field`. */
export function parseScheduleChanges(input: unknown, limits: FieldLimits): ParsedScheduleChanges {
  if (!isObject(input)) {
    throw invalidField(
      "schedule",
      `the changes of a schedule must be an object, like {"status": "paused"}${insteadOf(input)}`,
    );
  }
  checkKnown(input, KNOWN);
  const { schedule, tz } = input;
  const work = optionalWork(input);
  return {
    fields: { ...(work === undefined ? {} : { work }), ...readScheduleFields(input, limits) },
    status: readStatus(input),
    schedule,
    tz: tz === undefined ? undefined : checkZone(tz),
  };
}

/** `enabled` is another way to say it. */
function readStatus(input: Fields): "active" | "paused" | undefined {
  const status = optionalChoice(input, "status", ["active", "paused"]);
  const enabled = optionalBoolean(input, "enabled");
  if (enabled === undefined) return status;
  const said = enabled ? "active" : "paused";
  if (status === undefined || status === said) return said;
  throw invalidField(
    "enabled",
    `\`enabled\` ${enabled} and \`status\` ${status} contradict each other: write one of them`,
  );
}
