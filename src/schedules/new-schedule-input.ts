import { DEFAULT_AGENT } from "../model/agent.ts";
import type { RotaError } from "../model/errors.ts";
import { insteadOf, invalidField, isObject } from "../model/input/field-checks.ts";
import { readFields } from "../model/input/read-fields.ts";
import { SCHEDULE } from "../model/input/schedule-schema.ts";
import type { RetryPolicy } from "../model/retry-policy.ts";
import { type Rule, scheduleKind } from "../model/rule.ts";
import { canonicalForm } from "./canonical-form.ts";
import { nextDue } from "./limits.ts";
import type { When } from "./phrase.ts";
import { RUN_RETRY_POLICY, retryPolicyOf } from "./retry-input.ts";
import {
  DEFAULT_CATCH_UP,
  DEFAULT_OVERLAP,
  type FieldLimits,
  type ScheduleFields,
  scheduleFieldsOf,
} from "./schedule-fields.ts";
import { requiredWork } from "./schedule-work.ts";
import { parseZonedSchedule, phraseOf } from "./zoned-schedule.ts";

/** A schedule as submitted, with defaults for all fields that were left out. */
export interface ParsedSchedule extends Omit<ScheduleFields, "retry"> {
  readonly phrase: string;
  readonly rule: Rule;
  readonly retryPolicy: RetryPolicy;
  /** Whether it is active from the start. */
  readonly enabled: boolean;
}

/** Checks a new schedule and completes it. Throws `invalid_field`, naming the field and what to write instead. */
export function parseNewSchedule(input: unknown, when: When & FieldLimits): ParsedSchedule {
  if (!isObject(input)) {
    const example = '{"schedule": "every Mon at 09:00", "message": "Sum up last week."}';
    throw invalidField("schedule", `a schedule takes an object, like ${example}${insteadOf(input)}`);
  }
  const read = readFields(SCHEDULE, input, when);
  const rule = parseZonedSchedule(read, when);
  const work = requiredWork(read, input);
  const { retry = {}, ...fields } = scheduleFieldsOf(read, input);
  const parsed = checkDeletion<ParsedSchedule>({
    name: null,
    agent: DEFAULT_AGENT,
    conversationId: null,
    sessionKey: null,
    postToSession: false,
    deleteAfterRun: false,
    overlap: DEFAULT_OVERLAP,
    catchUp: DEFAULT_CATCH_UP,
    usefulForMs: null,
    timeoutMs: null,
    lane: null,
    priority: null,
    metadata: null,
    callbackUrl: null,
    maxRuns: null,
    untilAt: null,
    pauseAfterFailures: null,
    work,
    ...fields,
    phrase: phraseOf(read.schedule, rule),
    rule,
    retryPolicy: retryPolicyOf(retry, RUN_RETRY_POLICY),
    enabled: read.enabled ?? true,
  });
  checkUntil(parsed.untilAt, when.now);
  if (nextDue({ ...parsed, anchorAt: when.now }, when.now) === null) throw endsTooSoon(rule);
  return parsed;
}

/** Throws for an `until` that is past. */
export function checkUntil(untilAt: number | null | undefined, now: number): void {
  if (untilAt === null || untilAt === undefined || untilAt > now) return;
  throw invalidField("until", "`until` is in the past: write a later time");
}

/** The error for a schedule that would end before it is due. */
export function endsTooSoon(rule: Rule): RotaError {
  return invalidField(
    "until",
    `\`until\` is before "${canonicalForm(rule)}" is due: write a later time, or leave it out`,
  );
}

/** Throws if a recurring schedule is to be deleted after its run: it would be gone after the first. */
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

/** Throws if answers are to be added to a session and none is named. */
export function checkPosting(definition: {
  readonly postToSession: boolean;
  readonly sessionKey: string | null;
}): void {
  if (!definition.postToSession || definition.sessionKey !== null) return;
  throw invalidField(
    "post_to_session",
    "`post_to_session` adds answers to a session: name it by `session_key`, or leave this out",
  );
}
