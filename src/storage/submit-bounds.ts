import { RotaError } from "../model/errors.ts";

/**
 * Bounds on the tasks of one call, which all have the same owner and, if they have a parent, the same root. The storage counts in
 * the transaction that inserts the tasks, so that they hold over all nodes. Null: no bound.
 */
export interface SubmitBounds {
  readonly tenant: string;
  /** What the tasks are counted for: a key or an agent. */
  readonly owner: string;
  /** New tasks of the current minute and the 59 before it. */
  readonly maxSubmitsPerHour: number | null;
  /** Tasks of the owner that were inserted under this bound and have not ended. */
  readonly maxOpenTasks: number | null;
  /** Stored tasks below a root task. */
  readonly descendants: { readonly root: string; readonly max: number } | null;
}

/** How many minutes `maxSubmitsPerHour` covers, the current one included. */
export const SUBMIT_MINUTES = 60;
const MINUTE_MS = 60_000;

/** The bound that a call would exceed. */
export interface ExceededBound {
  readonly bound: "maxSubmitsPerHour" | "maxOpenTasks" | "maxDescendants";
  readonly max: number;
  /** Without the tasks of the call. */
  readonly used: number;
  /** When enough of them no longer count; null: that is not known. */
  readonly retryAt: number | null;
}

/** What counts against the bounds of an owner; 0 and none where it has no bound. */
export interface BoundsUsed {
  /** The submits of the last hour, by minute, the oldest first. */
  readonly minutes: readonly { readonly minute: number; readonly submits: number }[];
  readonly open: number;
  readonly descendants: number;
}

/** How many more tasks each bound allows. Throws if one more is too many, as the insert would. */
export function boundsLeft(bounds: SubmitBounds, used: BoundsUsed, now: number): Record<string, number> {
  const { maxSubmitsPerHour, maxOpenTasks, descendants } = bounds;
  const submits = used.minutes.reduce((sum, each) => sum + each.submits, 0);
  const counted = [
    { bound: "maxSubmitsPerHour", max: maxSubmitsPerHour, used: submits },
    { bound: "maxOpenTasks", max: maxOpenTasks, used: used.open },
    { bound: "maxDescendants", max: descendants?.max ?? null, used: used.descendants },
  ] as const;
  const left: Record<string, number> = {};
  for (const { bound, max, used: count } of counted) {
    if (max === null) continue;
    const retryAt = bound === "maxSubmitsPerHour" ? roomAt(used.minutes, count + 1 - max) : null;
    if (count + 1 > max) throw boundExceeded({ bound, max, used: count, retryAt }, now);
    left[bound] = max - count;
  }
  return left;
}

/** When so many submits no longer count; null: there are not that many. */
function roomAt(minutes: BoundsUsed["minutes"], wanted: number): number | null {
  let freed = 0;
  const last = minutes.find(({ submits }) => {
    freed += submits;
    return freed >= wanted;
  });
  return last === undefined ? null : (last.minute + SUBMIT_MINUTES) * MINUTE_MS;
}

const COUNTED = {
  maxSubmitsPerHour: "were submitted within an hour",
  maxOpenTasks: "have not ended",
  maxDescendants: "are below this root task",
} as const;

const ADVICE = {
  maxSubmitsPerHour: "try again later",
  maxOpenTasks: "wait until one has ended, or cancel one",
  maxDescendants: "do the rest in the tasks that there are",
} as const;

export function boundExceeded({ bound, max, used, retryAt }: ExceededBound, now: number): RotaError {
  const retryAfterSec = retryAt === null ? null : Math.max(Math.ceil((retryAt - now) / 1_000), 1);
  const advice = retryAfterSec === null ? ADVICE[bound] : `try again in ${retryAfterSec} seconds`;
  return new RotaError(
    "quota_exceeded",
    `\`${bound}\`: ${used} tasks ${COUNTED[bound]}, and ${max} is the most for this caller: ${advice}`,
    {
      details: { bound, max, used },
      ...(retryAfterSec === null ? {} : { retryAfterSec }),
    },
  );
}
