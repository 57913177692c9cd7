import { DEFAULT_AGENT } from "../model/agent.ts";
import { type Fields, insteadOf, invalidField, isObject } from "../model/input/field-checks.ts";
import { readChanges } from "../model/input/read-fields.ts";
import { SCHEDULE_CHANGES } from "../model/input/schedule-schema.ts";
import type { ReadChangesOf } from "../model/input/schema.ts";
import { RUN_RETRY_POLICY } from "./retry-input.ts";
import {
  DEFAULT_CATCH_UP,
  DEFAULT_OVERLAP,
  type FieldLimits,
  type ScheduleFields,
  scheduleFieldsOf,
} from "./schedule-fields.ts";
import { optionalWork } from "./schedule-work.ts";
import { checkZone, localZone } from "./zone.ts";

/** The changes of a schedule. Fields that are left out stay. */
export interface ParsedScheduleChanges {
  readonly fields: Partial<ScheduleFields>;
  readonly status: "active" | "paused" | undefined;
  /** Not parsed: its meaning depends on the current time and on the zone of the schedule. */
  readonly schedule: unknown;
  readonly tz: string | undefined;
}

type Changes = ReadChangesOf<typeof SCHEDULE_CHANGES.fields>;

/** Checks the changes of a schedule, except for a new `schedule`. Throws `invalid_field`. */
export function parseScheduleChanges(input: unknown, limits: FieldLimits): ParsedScheduleChanges {
  if (!isObject(input)) {
    throw invalidField(
      "schedule",
      `the changes of a schedule must be an object, like {"status": "paused"}${insteadOf(input)}`,
    );
  }
  const given = withDefaults(input);
  const changes = readChanges(SCHEDULE_CHANGES, given, limits);
  const { schedule, tz } = changes;
  const work = optionalWork(changes, given);
  return {
    fields: { ...(work === undefined ? {} : { work }), ...scheduleFieldsOf(changes, given) },
    status: statusOf(changes),
    schedule,
    tz: tz === undefined ? undefined : checkZone(tz),
  };
}

const RETRY_DEFAULTS: Fields = {
  max_retries: RUN_RETRY_POLICY.maxRetries,
  base_delay_ms: RUN_RETRY_POLICY.backoffMs,
  max_delay_ms: RUN_RETRY_POLICY.maxBackoffMs,
};

/** Null resets a field to its default. */
function withDefaults(input: Fields): Fields {
  const { retry } = input;
  const nested = isObject(retry) ? { retry: takenBack(retry, RETRY_DEFAULTS) } : {};
  const defaults = {
    agent: DEFAULT_AGENT,
    tz: localZone(),
    status: "active",
    enabled: true,
    post_to_session: false,
    delete_after_run: false,
    overlap: DEFAULT_OVERLAP,
    catch_up: DEFAULT_CATCH_UP,
    retry: RETRY_DEFAULTS,
  };
  return takenBack({ ...input, ...nested }, defaults);
}

/** Null stays if the default is null, or if there is none. */
function takenBack(fields: Fields, defaults: Fields): Fields {
  const entries = Object.entries(fields);
  return Object.fromEntries(
    entries.map(([name, value]) => [name, value === null ? (defaults[name] ?? null) : value]),
  );
}

/** `enabled` is another form of `status`. */
function statusOf(changes: Pick<Changes, "status" | "enabled">): "active" | "paused" | undefined {
  // Null is their default by now.
  const status = changes.status ?? undefined;
  const enabled = changes.enabled ?? undefined;
  if (enabled === undefined) return status;
  const said = enabled ? "active" : "paused";
  if (status === undefined || status === said) return said;
  throw invalidField(
    "enabled",
    `\`enabled\` ${enabled} and \`status\` ${status} contradict each other: write one of them`,
  );
}
