import type { Rule } from "../model/rule.ts";
import { nextMoment } from "./moments.ts";

/** A row of the ledger: the moments from the first to the last of them have their row. */
export interface AccountedSpan {
  readonly firstDueAt: number;
  readonly dueAt: number;
}

export interface Account {
  readonly rule: Rule;
  readonly anchor: number;
  /** Moments after this one are accounted for … */
  readonly after: number;
  /** … if they come before this one. */
  readonly before: number;
  readonly spans: readonly AccountedSpan[];
  /** How many to look for at most. */
  readonly limit: number;
}

/**
 * Moments of a rule that nothing stands for, oldest first. Whole spans are stepped over, so that a row which stands for a
 * million moments costs what one for a single moment does.
 */
export function unaccountedMoments({ rule, anchor, after, before, spans, limit }: Account): number[] {
  const inOrder = spans.toSorted((a, b) => a.firstDueAt - b.firstDueAt || a.dueAt - b.dueAt);
  const missing: number[] = [];
  let next = 0;
  let last = after;
  while (missing.length < limit) {
    const moment = nextMoment(rule, { after: last, anchor });
    if (moment === null || moment >= before) break;
    while ((inOrder[next]?.dueAt ?? Number.POSITIVE_INFINITY) < moment) next += 1;
    const span = inOrder[next];
    if (span !== undefined && span.firstDueAt <= moment) {
      last = span.dueAt;
    } else {
      missing.push(moment);
      last = moment;
    }
  }
  return missing;
}

/** Moments that two rows stand for, where there should be one. */
export function doubledMoments(spans: readonly AccountedSpan[]): number[] {
  const inOrder = spans.toSorted((a, b) => a.firstDueAt - b.firstDueAt || a.dueAt - b.dueAt);
  const doubled: number[] = [];
  let upTo = Number.NEGATIVE_INFINITY;
  for (const { firstDueAt, dueAt } of inOrder) {
    if (firstDueAt <= upTo) doubled.push(firstDueAt);
    upTo = Math.max(upTo, dueAt);
  }
  return doubled;
}
