import { RotaError } from "../../model/errors.ts";
import type { OnceRule, Rule } from "../../model/rule.ts";
import { nextDue, runsLeft } from "../../schedules/limits.ts";
import { checkDeletion, checkPosting, checkUntil, endsTooSoon } from "../../schedules/new-schedule-input.ts";
import { onceAt } from "../../schedules/once.ts";
import { retryPolicyOf } from "../../schedules/retry-input.ts";
import type { ParsedScheduleChanges } from "../../schedules/schedule-changes-input.ts";
import { parseZonedSchedule, phraseOf } from "../../schedules/zoned-schedule.ts";
import type { ScheduleDefinition, ScheduleRecord, UpdateScheduleParams } from "../../storage/storage.ts";

export type Changes = UpdateScheduleParams["changes"];

/**
 * Returns the fields to write for an edit of a schedule; none if nothing changes. Throws `invalid_field`, and `conflict` for a
 * status that it cannot have.
 */
export function editSchedule(record: ScheduleRecord, wanted: ParsedScheduleChanges, now: number): Changes {
  const { retry, ...fields } = wanted.fields;
  const changes: Partial<ScheduleDefinition> = {
    ...fields,
    ...(retry === undefined ? {} : { retryPolicy: retryPolicyOf(retry, record.retryPolicy) }),
    ...timing(record, wanted, now),
  };
  checkDeletion({ ...record, ...changes });
  checkPosting({ ...record, ...changes });
  checkUntil(fields.untilAt, now);
  checkOnceWithin({ ...record, ...changes });
  const moves = changes.rule !== undefined && !isSameMoment(record.rule, changes.rule);
  const isBounded = fields.maxRuns !== undefined || fields.untilAt !== undefined;
  return { ...changes, ...course({ ...record, ...changes }, { ...wanted, moves, isBounded }, now) };
}

/** A schedule that is due once, after its `until`, would never fire. */
function checkOnceWithin({ rule, untilAt }: Pick<ScheduleRecord, "rule" | "untilAt">): void {
  if (rule.kind === "once" && untilAt !== null && rule.atMs > untilAt) throw endsTooSoon(rule);
}

function isSameMoment(before: Rule, after: Rule): boolean {
  return before.kind === "once" && after.kind === "once" && before.atMs === after.atMs;
}

type Timing = Partial<Pick<ScheduleDefinition, "phrase" | "rule" | "anchorAt">>;

/** The new rule, if it changes. */
function timing(record: ScheduleRecord, { schedule, tz }: ParsedScheduleChanges, now: number): Timing {
  if (schedule !== undefined) {
    const rule = parseZonedSchedule({ schedule, tz }, { now, tz: record.rule.tz });
    return { phrase: phraseOf(schedule, rule), rule, anchorAt: now };
  }
  if (tz === undefined || tz === record.rule.tz) return {};
  return { rule: inZone(record.rule, tz), anchorAt: now };
}

/** A schedule that is due once keeps its due time: the zone only affects how it is shown. */
function inZone(rule: Rule, tz: string): Rule {
  const isOnWall = rule.kind === "once" && !rule.phrase.startsWith("in ");
  return isOnWall ? onceAt(rule.atMs, tz) : { ...rule, tz };
}

interface Course extends ParsedScheduleChanges {
  /** Whether its due times change. */
  readonly moves: boolean;
  /** Whether its `until` or its `max_runs` changes. */
  readonly isBounded: boolean;
}

/** The new status and the next due time. `record` already has its new rule and its new bounds. */
function course(record: ScheduleRecord, wanted: Course, now: number): Partial<Changes> {
  const { schedule, status, moves, isBounded } = wanted;
  // An ended schedule becomes active again only with a new `schedule`, or if the bound that ended it no longer does.
  const isRenewed = schedule !== undefined || (isBounded && isReleased(record, now));
  const becomes = status ?? (isRenewed && record.status !== "paused" ? "active" : record.status);
  if (becomes === "paused") return pause(record, { isRenewed, isWished: status !== undefined });
  if (becomes !== "active") return {};
  if (record.status === "active") {
    return moves || isBounded ? boundedAnew(record, { moves }, now) : {};
  }
  const nextFireAt = schedule === undefined ? resumed(record, now) : nextDue(record, now);
  if (runsLeft(record) === 0)
    throw conflict(record, `has reached \`max_runs\` (${record.maxRuns}): raise it`);
  if (nextFireAt === null && record.rule.kind !== "once") {
    throw conflict(record, "is not due any more before its `until`: give it a later one");
  }
  return { status: "active", nextFireAt };
}

/** Whether a recurring schedule has completed, but its new bounds leave it more runs. */
function isReleased(record: ScheduleRecord, now: number): boolean {
  const { status, rule } = record;
  return (
    status === "completed" && rule.kind !== "once" && runsLeft(record) > 0 && nextDue(record, now) !== null
  );
}

/** The next due time of an active schedule; it completes if its new bounds leave it no more runs. */
function boundedAnew(record: ScheduleRecord, { moves }: { moves: boolean }, now: number): Partial<Changes> {
  const { rule, nextFireAt, untilAt, openRuns } = record;
  const isLate = nextFireAt !== null && untilAt !== null && nextFireAt > untilAt;
  const next = moves ? nextDue(record, now) : isLate ? null : nextFireAt;
  if (runsLeft(record) > 0 && (next !== null || rule.kind === "once")) return { nextFireAt: next };
  // A schedule that is due once ends with its open run.
  if (rule.kind === "once" && openRuns > 0) return { nextFireAt: null };
  return { status: "completed", nextFireAt: null };
}

function conflict({ id }: ScheduleRecord, fault: string): RotaError {
  return new RotaError("conflict", `schedule ${id} ${fault}`);
}

function pause(
  { status, held, id }: ScheduleRecord,
  { isRenewed, isWished }: { isRenewed: boolean; isWished: boolean },
): Partial<Changes> {
  // A schedule held with its tenant is now paused by its owner: it stays paused when the tenant is enabled.
  if (status === "paused") return held && isWished ? { status } : {};
  if (status === "active" || isRenewed) return { status: "paused", nextFireAt: null };
  throw new RotaError("conflict", `schedule ${id} is ${status}: only an active schedule can be paused`);
}

/** The next due time after a pause. Due times during the pause do not fire, except that of a schedule that is due once. */
function resumed(record: ScheduleRecord, now: number): number | null {
  const { rule } = record;
  if (rule.kind === "once") return resumedOnce({ ...record, rule }, now);
  return nextDue(record, now);
}

function resumedOnce(
  record: Omit<ScheduleRecord, "rule"> & { readonly rule: OnceRule },
  now: number,
): number | null {
  const { rule, lastDueAt, openRuns, status, id } = record;
  if (lastDueAt === null || lastDueAt < rule.atMs) return rule.atMs;
  // The schedule ends with its open run.
  if (openRuns > 0) return null;
  // It was paused because it could not run at its due time.
  if (status === "paused") return now;
  throw new RotaError(
    "conflict",
    `the due time of schedule ${id} has passed: give it a new \`schedule\`, or run it now`,
  );
}
