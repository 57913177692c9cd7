import type { TaskOrder } from "../model/task-order.ts";
import type { ListTasksParams } from "./task-reads.ts";

/** How many tasks one call of `list` reads: any number of tasks may not match the filter. */
export const LISTED_LOOKED_MAX = 2_000;

/** The same in the order of ends, which is slower: neither the log rows nor their tasks lie together on disk. */
export const ENDED_LOOKED_MAX = 1_000;

/** The part of a list that one index yields, in the order of the list. */
export interface Walk {
  /** The tasks that match: at most one more than the page holds. */
  readonly found: readonly number[];
  /** The last task that was read; null: the index has no more. */
  readonly reached: number | null;
}

/**
 * Merges the parts that several indexes yield of one list. The page ends where the first index stopped; later tasks are left
 * for the next page.
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

/** The filters that an index may cover; the others are checked task by task. */
export const LIST_FILTERS = [
  "agent",
  "states",
  "priority",
  "priorityMax",
  "batch",
  "lane",
  "session",
  "schedule",
  "root",
  "search",
  "from",
  "to",
] as const;
export type ListFilter = (typeof LIST_FILTERS)[number];

/** Whether a list has filters that its index does not cover. */
export function asksForMore(params: ListTasksParams, answered: readonly ListFilter[]): boolean {
  return LIST_FILTERS.some((filter) => params[filter] !== undefined && !answered.includes(filter));
}

/** All ids that begin with `prefix` sort between `prefix` and this text. */
export function behindPrefix(prefix: string): string {
  return `${prefix}\u{10ffff}`;
}
