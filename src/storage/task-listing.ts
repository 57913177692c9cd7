import type { TaskOrder } from "../model/task-order.ts";
import type { ListTasksParams } from "./task-storage.ts";

/** How many tasks one call of `list` looks at: behind many that do not fit there can be any number of them. */
export const LISTED_LOOKED_MAX = 4_000;

/** The same in the order of ends: neither the log nor the tasks that it tells of lie together. */
export const ENDED_LOOKED_MAX = 2_000;

/** What one index has of a list, in the order of the list. */
export interface Walk {
  /** Those that fit: at most one more than the page holds. */
  readonly found: readonly number[];
  /** The last that was looked at; null: there is nothing behind it. */
  readonly reached: number | null;
}

/**
 * Puts together what several indexes have of one list. None of them may have stopped before the others: what lies behind the
 * first to stop is left for the next page.
 */
export function mergeWalks(
  walks: readonly Walk[],
  { order, limit }: { readonly order: TaskOrder; readonly limit: number },
): { readonly found: number[]; readonly nextCursor: number | null } {
  const inOrder = (a: number, b: number) => (order === "oldest" ? a - b : b - a);
  const ends = walks.flatMap(({ found, reached }) =>
    found.length > limit ? found.slice(-1) : (reached ?? []),
  );
  const end = ends.sort(inOrder)[0];
  const found = [...new Set(walks.flatMap((walk) => walk.found))]
    .filter((seq) => end === undefined || inOrder(seq, end) <= 0)
    .sort(inOrder);
  const page = found.slice(0, limit);
  if (found.length > limit) return { found: page, nextCursor: page.at(-1) ?? null };
  return { found: page, nextCursor: end ?? null };
}

/** The filters that an index may already answer for; what it does not is looked up task by task. */
export const LIST_FILTERS = [
  "agent",
  "states",
  "priority",
  "priorityMax",
  "batch",
  "lane",
  "session",
  "schedule",
  "search",
  "from",
  "to",
] as const;
export type ListFilter = (typeof LIST_FILTERS)[number];

/** Whether a list asks for anything else than what an index answers for. */
export function asksForMore(params: ListTasksParams, answered: readonly ListFilter[]): boolean {
  return LIST_FILTERS.some((filter) => params[filter] !== undefined && !answered.includes(filter));
}

/** The ids that begin with a text lie between it and this. */
export function behindPrefix(prefix: string): string {
  return `${prefix}\u{10ffff}`;
}
