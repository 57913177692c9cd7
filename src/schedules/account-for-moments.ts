import type { Rule } from "../model/rule.ts";
import { nextMoment } from "./moments.ts";

/** A row: it covers the due times from the first to the last. */
export interface AccountedSpan {
  readonly firstDueAt: number;
  readonly dueAt: number;
}

export interface Account {
  readonly rule: Rule;
  readonly anchor: number;
  /** Due times after this one are checked … */
  readonly after: number;
  /** … if they are before this one. */
  readonly before: number;
  readonly spans: readonly AccountedSpan[];
  /** How many missing due times to return at most. */
  readonly limit: number;
}

/**
 * Due times of a rule that no row covers, oldest first. Whole spans are skipped, so that a row for a million due times costs as
 * little as a row for one.
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

/** Due times that two rows cover, where there should be one. */
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
