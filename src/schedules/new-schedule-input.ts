import {
  checkKnown,
  insteadOf,
  invalidField,
  isObject,
  optionalBoolean,
  requiredText,
  withoutNulls,
} from "../model/field-checks.ts";
import type { RetryPolicy } from "../model/retry-policy.ts";
import { type Rule, scheduleKind } from "../model/rule.ts";
import { DEFAULT_AGENT } from "../model/task.ts";
import { canonicalForm } from "./canonical-form.ts";
import type { When } from "./phrase.ts";
import { RUN_RETRY_POLICY, retryPolicyOf } from "./retry-input.ts";
import {
  DEFAULT_CATCH_UP,
  DEFAULT_OVERLAP,
  FIELD_NAMES,
  type FieldLimits,
  readScheduleFields,
  type ScheduleFields,
} from "./schedule-fields.ts";
import { parseZonedSchedule, phraseOf } from "./zoned-schedule.ts";

/** A schedule as it was asked for, with everything that was left out filled in. */
export interface ParsedSchedule extends Omit<ScheduleFields, "retry"> {
  readonly phrase: string;
  readonly rule: Rule;
  readonly retryPolicy: RetryPolicy;
  /** Whether it begins to be due at once. */
  readonly enabled: boolean;
}

const KNOWN = ["schedule", "tz", "enabled", ...FIELD_NAMES];

/** Checks a new schedule and completes it. Throws `invalid_field`, naming the field and what to write instead. */
export function parseNewSchedule(input: unknown, when: When & FieldLimits): ParsedSchedule {
  if (!isObject(input)) {
    const example = '{"schedule": "every Mon at 09:00", "message": "Sum up last week."}';
    throw invalidField("schedule", `a schedule takes an object, like ${example}${insteadOf(input)}`);
  }
  checkKnown(input, KNOWN);
  const given = withoutNulls(input);
  const rule = parseZonedSchedule(given, when);
  const message = requiredText(given, "message");
  const enabled = optionalBoolean(given, "enabled") ?? true;
  const { retry = {}, ...fields } = readScheduleFields(given, when);
  return checkDeletion({
    name: null,
    agent: DEFAULT_AGENT,
    conversationId: null,
    sessionKey: null,
    deleteAfterRun: false,
    overlap: DEFAULT_OVERLAP,
    catchUp: DEFAULT_CATCH_UP,
    usefulForMs: null,
    timeoutMs: null,
    message,
    ...fields,
    phrase: phraseOf(given["schedule"], rule),
    rule,
    retryPolicy: retryPolicyOf(retry, RUN_RETRY_POLICY),
    enabled,
  });
}

/** Refuses that a schedule goes after its run if that is not its last: it would be gone after the first. */
export function checkDeletion<Definition extends { readonly rule: Rule; readonly deleteAfterRun: boolean }>(
  definition: Definition,
): Definition {
  const { rule, deleteAfterRun } = definition;
  if (!deleteAfterRun || scheduleKind(rule) === "once") return definition;
  throw invalidField(
    "delete_after_run",
    `\`delete_after_run\` is for a schedule that is due once, and "${canonicalForm(rule)}" recurs: set it to false`,
  );
}
