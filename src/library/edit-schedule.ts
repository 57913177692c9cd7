import { RotaError } from "../model/errors.ts";
import type { OnceRule, Rule } from "../model/rule.ts";
import { nextMoment } from "../schedules/moments.ts";
import { checkDeletion } from "../schedules/new-schedule-input.ts";
import { onceAt } from "../schedules/once.ts";
import { retryPolicyOf } from "../schedules/retry-input.ts";
import type { ParsedScheduleChanges } from "../schedules/schedule-changes-input.ts";
import { parseZonedSchedule, phraseOf } from "../schedules/zoned-schedule.ts";
import type { ScheduleDefinition, ScheduleRecord, UpdateScheduleParams } from "../storage/storage.ts";

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
  const moves = changes.rule !== undefined && !isSameMoment(record.rule, changes.rule);
  return { ...changes, ...course({ ...record, ...changes }, { ...wanted, moves }, now) };
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
}

/** What becomes of its status, and of what is due next. `record` has its new rule already. */
function course(record: ScheduleRecord, { schedule, status, moves }: Course, now: number): Partial<Changes> {
  // One that is over begins again with a new schedule, and with nothing else.
  const isRenewed = schedule !== undefined && record.status !== "paused";
  const becomes = status ?? (isRenewed ? "active" : record.status);
  if (becomes === "paused") {
    return pause(record, { isRenewed: schedule !== undefined, isWished: status !== undefined });
  }
  if (becomes !== "active") return {};
  if (record.status === "active") return moves ? { nextFireAt: next(record, now) } : {};
  return { status: "active", nextFireAt: schedule === undefined ? resumed(record, now) : next(record, now) };
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

/** The first moment of a rule that counts from now. */
function next({ rule, anchorAt }: ScheduleRecord, now: number): number | null {
  return nextMoment(rule, { after: now, anchor: anchorAt });
}

/** Where it goes on after a pause: what came meanwhile was not due, but for the only moment of one that is due once. */
function resumed(record: ScheduleRecord, now: number): number | null {
  const { rule, anchorAt } = record;
  if (rule.kind === "once") return resumedOnce({ ...record, rule }, now);
  return nextMoment(rule, { after: now, anchor: anchorAt });
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
