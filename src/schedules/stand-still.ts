import { countMoments, lastMoment, nextMoment } from "./moments.ts";
import { type DueSchedule, MOMENTS_MAX, type PlannedMoments } from "./plan-fire.ts";

/** How far the moments of a recurring schedule are pushed while its tenant is disabled. */
export const PUSH_MS = 60 * 60 * 1_000;

/** A recurring schedule of a tenant that is, or was, disabled. */
export interface StandingSchedule extends Pick<DueSchedule, "rule" | "anchorAt"> {
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
export function pushed(schedule: StandingSchedule, now: number): Standstill {
  const { rule, anchorAt: anchor } = schedule;
  const skipped = momentsFrom(firstOpen(schedule), schedule, now);
  const last = skipped?.dueAt ?? now;
  return { skipped, nextFireAt: nextMoment(rule, { after: last + PUSH_MS - 1, anchor }) };
}

/**
 * The same once the tenant is enabled: the next moment is the first to come. Null: it was not pushed, and what is due is due.
 */
export function goesOn(schedule: StandingSchedule, now: number): Standstill | null {
  const { rule, anchorAt: anchor, nextFireAt } = schedule;
  const first = firstOpen(schedule);
  if (first >= nextFireAt) return null;
  return { skipped: momentsFrom(first, schedule, now), nextFireAt: nextMoment(rule, { after: now, anchor }) };
}

/**
 * When one is due that was paused until its tenant is enabled: its only moment, however long ago; where it was given another
 * rule meanwhile, as that says. Null: never.
 */
export function heldUntil(
  { rule, anchorAt: anchor }: Pick<StandingSchedule, "rule" | "anchorAt">,
  now: number,
): number | null {
  return rule.kind === "once" ? rule.atMs : nextMoment(rule, { after: now, anchor });
}

/**
 * The first moment that has no row. Of one that was pushed before it lies before the next that is looked at; while it was
 * paused, none was due.
 */
function firstOpen({ rule, anchorAt: anchor, nextFireAt, lastDueAt, updatedAt }: StandingSchedule): number {
  if (lastDueAt === null) return nextFireAt;
  const first = nextMoment(rule, { after: Math.max(lastDueAt, updatedAt), anchor });
  return Math.min(first ?? nextFireAt, nextFireAt);
}

function momentsFrom(
  first: number,
  { rule, anchorAt: anchor }: StandingSchedule,
  now: number,
): PlannedMoments | null {
  if (first > now) return null;
  return {
    firstDueAt: first,
    dueAt: lastMoment(rule, { after: first, anchor, until: now }) ?? first,
    moments: 1 + countMoments(rule, { after: first, anchor, until: now, max: MOMENTS_MAX - 1 }),
  };
}
