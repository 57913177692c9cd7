import { nextDue, withinUntil } from "./limits.ts";
import { countMoments, lastMoment } from "./moments.ts";
import { type DueSchedule, MOMENTS_MAX, type PlannedMoments } from "./plan-fire.ts";

/** How far the moments of a recurring schedule are deferred while its tenant is disabled. */
export const PUSH_MS = 60 * 60 * 1_000;

/** A recurring schedule of a tenant that is, or was, disabled. */
export interface StandingSchedule extends Pick<DueSchedule, "rule" | "anchorAt" | "untilAt"> {
  readonly nextFireAt: number;
  /** When it was changed last. */
  readonly updatedAt: number;
  /** The last moment that has its row; null: none has. */
  readonly lastDueAt: number | null;
}

export interface Standstill {
  /** The moments that did not fire and have no row yet; null: there are none. */
  readonly skipped: PlannedMoments | null;
  /** Null: it is never due again. */
  readonly nextFireAt: number | null;
}

/**
 * What becomes of the moments of a schedule that have come while its tenant is disabled: one row stands for all of them, and
 * the next is not looked at before an hour has passed.
 */
export function deferWhileDisabled(schedule: StandingSchedule, now: number): Standstill {
  const skipped = momentsFrom(firstOpen(schedule), schedule, now);
  const last = skipped?.dueAt ?? now;
  return { skipped, nextFireAt: nextDue(schedule, last + PUSH_MS - 1) ?? lastDue(schedule, last) };
}

/** The last moment before its end, where that comes within the hour: it would be over before it is looked at again. */
function lastDue({ rule, anchorAt: anchor, untilAt }: StandingSchedule, after: number): number | null {
  return untilAt === null || untilAt <= after ? null : lastMoment(rule, { after, anchor, until: untilAt });
}

/**
 * The same once the tenant is enabled: the next moment is the first to come. Null: it was not deferred, and what is due is due.
 */
export function resumeAfterEnable(schedule: StandingSchedule, now: number): Standstill | null {
  const first = firstOpen(schedule);
  if (first >= schedule.nextFireAt) return null;
  return { skipped: momentsFrom(first, schedule, now), nextFireAt: nextDue(schedule, now) };
}

/**
 * When one is due that was paused until its tenant is enabled: its only moment, however long ago; where it was given another
 * rule meanwhile, as that says. Null: never.
 */
export function heldUntil(
  schedule: Pick<StandingSchedule, "rule" | "anchorAt" | "untilAt">,
  now: number,
): number | null {
  return schedule.rule.kind === "once" ? schedule.rule.atMs : nextDue(schedule, now);
}

/**
 * The first moment that has no row. Of one that was deferred before it lies before the next that is looked at; while it was
 * paused, none was due.
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
