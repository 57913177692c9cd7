import { nextDue, withinUntil } from "./limits.ts";
import { countMoments, lastMoment } from "./moments.ts";
import { type DueSchedule, MOMENTS_MAX, type PlannedMoments } from "./plan-fire.ts";

/** How far a recurring schedule is deferred each time while its tenant is disabled. */
export const PUSH_MS = 60 * 60 * 1_000;

/** A recurring schedule of a tenant that is, or was, disabled. */
export interface StandingSchedule extends Pick<DueSchedule, "rule" | "anchorAt" | "untilAt"> {
  readonly nextFireAt: number;
  /** When it was changed last. */
  readonly updatedAt: number;
  /** The last due time that has a row; null: none has. */
  readonly lastDueAt: number | null;
}

export interface Standstill {
  /** The due times that did not fire and have no row yet; null: there are none. */
  readonly skipped: PlannedMoments | null;
  /** Null: it is never due again. */
  readonly nextFireAt: number | null;
}

/**
 * Plans for due times that came while the tenant is disabled: one row covers all of them, and the schedule is not due again
 * within an hour.
 */
export function deferWhileDisabled(schedule: StandingSchedule, now: number): Standstill {
  const skipped = momentsFrom(firstOpen(schedule), schedule, now);
  const last = skipped?.dueAt ?? now;
  return { skipped, nextFireAt: nextDue(schedule, last + PUSH_MS - 1) ?? lastDue(schedule, last) };
}

/** The last due time before `untilAt`, if that is within the hour: otherwise the schedule would end without a row for it. */
function lastDue({ rule, anchorAt: anchor, untilAt }: StandingSchedule, after: number): number | null {
  return untilAt === null || untilAt <= after ? null : lastMoment(rule, { after, anchor, until: untilAt });
}

/**
 * Plans for a tenant that is enabled again: the schedule is due at the first future due time. Null: it was not deferred, and its
 * `nextFireAt` stays.
 */
export function resumeAfterEnable(schedule: StandingSchedule, now: number): Standstill | null {
  const first = firstOpen(schedule);
  if (first >= schedule.nextFireAt) return null;
  return { skipped: momentsFrom(first, schedule, now), nextFireAt: nextDue(schedule, now) };
}

/**
 * When a schedule is due that was held until its tenant is enabled: at its only due time, however long ago. If its rule was
 * changed to a recurring one meanwhile, at the next due time of that. Null: never.
 */
export function heldUntil(
  schedule: Pick<StandingSchedule, "rule" | "anchorAt" | "untilAt">,
  now: number,
): number | null {
  return schedule.rule.kind === "once" ? schedule.rule.atMs : nextDue(schedule, now);
}

/**
 * The first due time without a row. If the schedule was deferred, it is earlier than `nextFireAt`. Due times before the last
 * change, such as those during a pause, do not count.
 */
function firstOpen(schedule: StandingSchedule): number {
  const { nextFireAt, lastDueAt, updatedAt } = schedule;
  if (lastDueAt === null) return nextFireAt;
  const first = nextDue(schedule, Math.max(lastDueAt, updatedAt));
  return Math.min(first ?? nextFireAt, nextFireAt);
}

function momentsFrom(first: number, schedule: StandingSchedule, now: number): PlannedMoments | null {
  const { rule, anchorAt: anchor } = schedule;
  const until = withinUntil(schedule, now);
  if (first > until) return null;
  return {
    firstDueAt: first,
    dueAt: lastMoment(rule, { after: first, anchor, until }) ?? first,
    moments: 1 + countMoments(rule, { after: first, anchor, until, max: MOMENTS_MAX - 1 }),
  };
}
