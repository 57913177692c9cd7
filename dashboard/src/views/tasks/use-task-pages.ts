import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import type { RotaEvent, TaskRow, TaskRowPage } from "../../../../src/client/index.ts";
import { useSession } from "../../api/session.tsx";
import { useLiveEvents, useLiveState } from "../../live/live.tsx";
import { useQueryClient } from "../../queries/query-context.ts";
import { useInfiniteQuery } from "../../queries/use-query.ts";
import { rowOfTask } from "./arrange.ts";
import { patchRows } from "./patch-rows.ts";
import { isNewRow, mayConcern, type TaskFilters, toQuery } from "./task-filters.ts";

const PAGE_ROWS = 100;
/** With more pages than this the list is not refetched by itself: the user is reading further down. */
const FRESH_PAGES = 2;
/** So many pages are searched by themselves for a filter that few tasks match: 40 000 tasks. */
const SEARCHED_PAGES = 20;
/** Users do not scroll through more rows than this, and browsers cannot draw a page that high. */
const ROWS_MAX = 500_000;

export interface TaskPages {
  readonly tasks: readonly TaskRow[];
  readonly error: Error | null;
  readonly isLoading: boolean;
  /** Whether the server has more that can be shown. */
  readonly hasMore: boolean;
  /** Whether there are more than can be shown. */
  readonly isCut: boolean;
  readonly loadMore: () => void;
  /** Why the next page could not be read. */
  readonly moreError: Error | null;
  readonly retryMore: () => void;
  /** Set if few tasks match and not all have been searched yet. */
  readonly searchOn: (() => void) | undefined;
  readonly reload: () => void;
  /** How many new tasks are not in the list yet. */
  readonly newCount: number;
  /** Whether the list may have changed in ways that are not counted. */
  readonly isOutdated: boolean;
  /** Reloads the list from the top. */
  readonly showNew: () => void;
  /** The list updates itself only while its top is on the screen. */
  readonly setAtTop: (isAtTop: boolean) => void;
}

export function useTaskPages(filters: TaskFilters): TaskPages {
  const { client } = useSession();
  const { isPaused } = useLiveState();
  const queries = useQueryClient();
  const [newCount, setNewCount] = useState(0);
  const [searchedMax, setSearchedMax] = useState(SEARCHED_PAGES);
  const isAtTop = useRef(true);
  const pageCount = useRef(0);
  const isFresh = useCallback(() => isAtTop.current && pageCount.current <= FRESH_PAGES, []);
  const queryKey = useMemo(() => {
    // The order of the loaded rows is no concern of the server. Of the groups, only whether there are any.
    const { sort: _sort, group, ...asked } = filters;
    return ["tasks", asked, group !== undefined];
  }, [filters]);

  const query = useInfiniteQuery<TaskRowPage, string | undefined>({
    queryKey,
    queryFn: async ({ pageParam, signal }) => {
      const query = {
        ...toQuery(filters, Date.now()),
        limit: PAGE_ROWS,
        ...(pageParam === undefined ? {} : { cursor: pageParam }),
      };
      if (filters.group === undefined) return client.tasks.listRows(query, { signal });
      // Rows have no metadata.
      const page = await client.tasks.list(query, { signal });
      return { ...page, tasks: page.tasks.map(rowOfTask) };
    },
    initialPageParam: undefined,
    getNextPageParam: ({ nextCursor }) => nextCursor ?? undefined,
    // A user who comes back to a long list finds it unchanged, without all of its pages being fetched again.
    refetchOnMount: ({ state }) => (state.data?.pages.length ?? 0) <= FRESH_PAGES,
    meta: {
      live: (event: RotaEvent) => mayConcern(filters, event),
      isHeld: () => !isFresh(),
      patch: patchRows,
    },
  });
  const { data, error, isPending, hasNextPage, isFetching, isFetchNextPageError } = query;
  const { isInvalidated, fetchNextPage, refetch } = query;
  pageCount.current = data?.pages.length ?? 0;
  // biome-ignore lint/correctness/useExhaustiveDependencies: another list is searched anew, and has no new rows yet.
  useEffect(() => {
    setSearchedMax(SEARCHED_PAGES);
    setNewCount(0);
  }, [queryKey]);
  // What came while the list was paused is read when it goes on.
  useEffect(() => {
    if (!isPaused && isFresh()) setNewCount(0);
  }, [isPaused, isFresh]);
  const tasks = useMemo(() => data?.pages.flatMap((page) => page.tasks) ?? [], [data]);
  const isCut = hasNextPage && tasks.length >= ROWS_MAX;
  // The server looks at only so many tasks for a page: that of a filter which few tasks match can be short or empty.
  const isShort = hasNextPage && !isFetchNextPageError && tasks.length < PAGE_ROWS;
  const isSearching = isShort && pageCount.current < searchedMax;
  const isSearchDue = isSearching && !isFetching;
  useEffect(() => {
    if (isSearchDue) void fetchNextPage();
  }, [isSearchDue, fetchNextPage]);

  useLiveEvents(
    useCallback(
      (events: readonly RotaEvent[]) => {
        if (isFresh() && !isPaused) return;
        const count = events.filter((event) => isNewRow(filters, event)).length;
        if (count > 0) setNewCount((before) => before + count);
      },
      [filters, isPaused, isFresh],
    ),
  );

  return {
    tasks,
    error: isFetchNextPageError ? null : error,
    isLoading: isPending || (tasks.length === 0 && isSearching),
    searchOn: isShort && !isSearching ? () => setSearchedMax(pageCount.current + SEARCHED_PAGES) : undefined,
    hasMore: hasNextPage && !isCut,
    isCut,
    loadMore: () => {
      if (hasNextPage && !isFetching && !isCut && !isFetchNextPageError) void fetchNextPage();
    },
    moreError: isFetchNextPageError ? error : null,
    retryMore: () => void fetchNextPage(),
    reload: () => void refetch(),
    newCount,
    isOutdated: isInvalidated && !isFetching && !isFresh(),
    showNew: () => {
      setNewCount(0);
      scrollTo({ top: 0 });
      void queries.resetQueries({ queryKey, exact: true });
    },
    setAtTop: (value) => {
      isAtTop.current = value;
      if (value && !isPaused && (newCount > 0 || isInvalidated) && isFresh()) {
        setNewCount(0);
        void refetch();
      }
    },
  };
}
