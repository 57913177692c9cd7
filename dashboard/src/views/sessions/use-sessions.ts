import { useEffect, useMemo, useRef } from "react";
import type { Session } from "../../../../src/client/index.ts";
import { useSession } from "../../api/session.tsx";
import { useInfiniteQuery } from "../../queries/use-query.ts";
import { isListed, kindOf } from "./session-text.ts";

const PAGE_SESSIONS = 200;
/**
 * The server cannot filter by kind, so up to this many pages are read to find enough sessions. A longer list is not refetched by
 * itself.
 */
const SEARCHED_PAGES = 5;
const ENOUGH = 30;

export interface SessionsQuery {
  /** Of this kind, newest first. */
  readonly sessions: readonly Session[];
  /** All kinds among the loaded sessions. */
  readonly kinds: readonly string[];
  /** How many loaded sessions are not listed. */
  readonly hidden: number;
  readonly error: Error | null;
  readonly isLoading: boolean;
  readonly hasMore: boolean;
  readonly loadMore: () => void;
  readonly reload: () => void;
}

export function useSessions(kind: string | undefined): SessionsQuery {
  const { client } = useSession();
  const pageCount = useRef(0);
  const { data, error, isPending, isFetching, hasNextPage, fetchNextPage, refetch } = useInfiniteQuery({
    queryKey: ["sessions"],
    queryFn: ({ pageParam, signal }) =>
      client.sessions.list(
        { limit: PAGE_SESSIONS, ...(pageParam === undefined ? {} : { cursor: pageParam }) },
        { signal },
      ),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ nextCursor }) => nextCursor ?? undefined,
    refetchOnMount: ({ state }) => (state.data?.pages.length ?? 0) <= SEARCHED_PAGES,
    meta: {
      live: ({ sessionKey, type }) => sessionKey !== undefined && type !== "task.progress",
      isHeld: () => pageCount.current > SEARCHED_PAGES,
    },
  });
  pageCount.current = data?.pages.length ?? 0;
  const all = useMemo(() => data?.pages.flatMap((page) => page.sessions) ?? [], [data]);
  const sessions = useMemo(() => all.filter(({ key }) => isListed(key, kind)), [all, kind]);
  const kinds = useMemo(() => [...new Set(all.map(({ key }) => kindOf(key)))].sort(), [all]);
  const isSearching = sessions.length < ENOUGH && pageCount.current < SEARCHED_PAGES;
  useEffect(() => {
    if (hasNextPage && isSearching && !isFetching) void fetchNextPage();
  }, [hasNextPage, isSearching, isFetching, fetchNextPage]);
  return {
    sessions,
    kinds,
    hidden: all.length - sessions.length,
    error,
    isLoading: isPending,
    hasMore: hasNextPage,
    loadMore: () => void fetchNextPage(),
    reload: () => void refetch(),
  };
}
