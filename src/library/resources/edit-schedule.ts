import { RotaError } from "../../model/errors.ts";
import type { OnceRule, Rule } from "../../model/rule.ts";
import { nextDue, runsLeft } from "../../schedules/limits.ts";
import { checkDeletion, checkUntil, endsTooSoon } from "../../schedules/new-schedule-input.ts";
import { onceAt } from "../../schedules/once.ts";
import { retryPolicyOf } from "../../schedules/retry-input.ts";
import type { ParsedScheduleChanges } from "../../schedules/schedule-changes-input.ts";
import { parseZonedSchedule, phraseOf } from "../../schedules/zoned-schedule.ts";
import type { ScheduleDefinition, ScheduleRecord, UpdateScheduleParams } from "../../storage/storage.ts";

export type Changes = UpdateScheduleParams["changes"];

/**
 * What is to be written when a schedule is changed so, as it is now; nothing where nothing changes. Throws `invalid_field`,
 * and `conflict` for a status that it cannot have.
 */
export function editSchedule(record: ScheduleRecord, wanted: ParsedScheduleChanges, now: number): Changes {
  const { retry, ...fields } = wanted.fields;
  const changes: Partial<ScheduleDefinition> = {
    ...fields,
    ...(retry === undefined ? {} : { retryPolicy: retryPolicyOf(retry, record.retryPolicy) }),
    ...timing(record, wanted, now),
  };
  checkDeletion({ ...record, ...changes });
  checkUntil(fields.untilAt, now);
  checkOnceWithin({ ...record, ...changes });
  const moves = changes.rule !== undefined && !isSameMoment(record.rule, changes.rule);
  const isBounded = fields.maxRuns !== undefined || fields.untilAt !== undefined;
  return { ...changes, ...course({ ...record, ...changes }, { ...wanted, moves, isBounded }, now) };
}

/** One that is due once, and only after its end, would never be anything. */
function checkOnceWithin({ rule, untilAt }: Pick<ScheduleRecord, "rule" | "untilAt">): void {
  if (rule.kind === "once" && untilAt !== null && rule.atMs > untilAt) throw endsTooSoon(rule);
}

function isSameMoment(before: Rule, after: Rule): boolean {
  return before.kind === "once" && after.kind === "once" && before.atMs === after.atMs;
}

type Timing = Partial<Pick<ScheduleDefinition, "phrase" | "rule" | "anchorAt">>;

/** When it is due from now on, where that changes. */
function timing(record: ScheduleRecord, { schedule, tz }: ParsedScheduleChanges, now: number): Timing {
  if (schedule !== undefined) {
    const rule = parseZonedSchedule({ schedule, tz }, { now, tz: record.rule.tz });
    return { phrase: phraseOf(schedule, rule), rule, anchorAt: now };
  }
  if (tz === undefined || tz === record.rule.tz) return {};
  return { rule: inZone(record.rule, tz), anchorAt: now };
}

/** What is due once stays the moment that it is: the zone is only how it is shown. */
function inZone(rule: Rule, tz: string): Rule {
  const isOnWall = rule.kind === "once" && !rule.phrase.startsWith("in ");
  return isOnWall ? onceAt(rule.atMs, tz) : { ...rule, tz };
}

interface Course extends ParsedScheduleChanges {
  /** Whether its moments are others than before. */
  readonly moves: boolean;
  /** Whether it is to end at another time, or after another number of runs, than before. */
  readonly isBounded: boolean;
}

/** What becomes of its status, and of what is due next. `record` has its new rule and its new bounds already. */
function course(record: ScheduleRecord, wanted: Course, now: number): Partial<Changes> {
  const { schedule, status, moves, isBounded } = wanted;
  // One that is over begins again with a new schedule, or when what ended it no longer does, and with nothing else.
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

/** Whether what has ended a schedule that recurs no longer does. */
function isReleased(record: ScheduleRecord, now: number): boolean {
  const { status, rule } = record;
  return (
    status === "completed" && rule.kind !== "once" && runsLeft(record) > 0 && nextDue(record, now) !== null
  );
}

/** What is left of one that goes on: nothing, if by its new bounds it has had enough. */
function boundedAnew(record: ScheduleRecord, { moves }: { moves: boolean }, now: number): Partial<Changes> {
  const { rule, nextFireAt, untilAt, openRuns } = record;
  const isLate = nextFireAt !== null && untilAt !== null && nextFireAt > untilAt;
  const next = moves ? nextDue(record, now) : isLate ? null : nextFireAt;
  if (runsLeft(record) > 0 && (next !== null || rule.kind === "once")) return { nextFireAt: next };
  // One that is due once ends with the run that goes.
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
  // Now it stays so by its owner's wish, also when its tenant is enabled.
  if (status === "paused") return held && isWished ? { status } : {};
  if (status === "active" || isRenewed) return { status: "paused", nextFireAt: null };
  throw new RotaError("conflict", `schedule ${id} is ${status}: there is nothing left of it to pause`);
}

/** Where it goes on after a pause: what came meanwhile was not due, but for the only moment of one that is due once. */
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
  // Its run still goes: the schedule ends with that.
  if (openRuns > 0) return null;
  // It could not run when its moment came: that was what it was paused for.
  if (status === "paused") return now;
  throw new RotaError(
    "conflict",
    `the only moment of schedule ${id} has come and gone: give it a new \`schedule\`, or run it now`,
  );
}
