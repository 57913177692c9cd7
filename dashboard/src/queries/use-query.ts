import { useCallback, useEffect, useRef, useSyncExternalStore } from "react";
import type { InfiniteData, Observer, Query, QueryKey, QueryMeta, Read } from "./query.ts";
import { useQueryClient } from "./query-context.ts";

/** Data younger than this is not fetched again when another component shows it. */
const STALE_MS = 1_000;

interface SharedOptions<Data> {
  readonly queryKey: QueryKey;
  readonly enabled?: boolean;
  readonly staleTime?: number;
  /** How long the data is kept when nothing shows it any more. */
  readonly gcTime?: number;
  /** False: what was read earlier is shown as it is, without another fetch. */
  readonly refetchOnMount?: (query: Query<Data>) => boolean;
  /** Milliseconds from the end of a fetch to the next one, while the tab is visible. */
  readonly refetchInterval?: number | false | ((query: Query<Data>) => number | false);
  /** What is shown until there is data for a new key. */
  readonly placeholderData?: (before: Data | undefined, query: Query<Data> | undefined) => Data | undefined;
  readonly meta?: QueryMeta;
}

interface QueryOptions<Data> extends SharedOptions<NoInfer<Data>> {
  readonly queryFn: (context: { readonly signal: AbortSignal }) => Promise<Data>;
}

interface InfiniteQueryOptions<Page, Param> extends SharedOptions<InfiniteData<Page>> {
  readonly queryFn: (context: { readonly signal: AbortSignal; readonly pageParam: Param }) => Promise<Page>;
  readonly initialPageParam: Param;
  /** Null or undefined: this is the last page. */
  readonly getNextPageParam: (last: NoInfer<Page>) => Param | null | undefined;
}

export interface UseQueryResult<Data> {
  readonly data: Data | undefined;
  readonly error: Error | null;
  /** There is neither data nor an error. */
  readonly isPending: boolean;
  readonly isFetching: boolean;
  readonly isEnabled: boolean;
  /** The data may have changed since it was read. */
  readonly isInvalidated: boolean;
  readonly isPlaceholderData: boolean;
  readonly dataUpdatedAt: number;
  readonly refetch: () => Promise<void>;
}

interface UseInfiniteQueryResult<Page> extends UseQueryResult<InfiniteData<Page>> {
  readonly hasNextPage: boolean;
  readonly isFetchingNextPage: boolean;
  readonly isFetchNextPageError: boolean;
  readonly fetchNextPage: () => Promise<void>;
}

/** Shows the data of the last key until there is data for the new one. */
export function keepPreviousData<Data>(before: Data | undefined): Data | undefined {
  return before;
}

/** Reads from the server, and shows what was read under the same key before. */
export function useQuery<Data>(options: QueryOptions<Data>): UseQueryResult<Data> {
  return useShared(options, options.queryFn).result;
}

/** Reads a list page by page. A refetch reads all pages that are there. */
export function useInfiniteQuery<Page, Param>(
  options: InfiniteQueryOptions<Page, Param>,
): UseInfiniteQueryResult<Page> {
  const { queryFn, initialPageParam, getNextPageParam } = options;
  const nextOf = (pages: readonly Page[]) => {
    const last = pages.at(-1);
    return last === undefined ? initialPageParam : (getNextPageParam(last) ?? undefined);
  };
  const { query, result } = useShared<InfiniteData<Page>>(options, async ({ signal, data, isNext }) => {
    const pages = isNext ? [...(data?.pages ?? [])] : [];
    const count = isNext ? pages.length + 1 : Math.max(1, data?.pages.length ?? 1);
    while (pages.length < count) {
      const pageParam = nextOf(pages);
      if (pages.length > 0 && pageParam === undefined) break;
      pages.push(await queryFn({ signal, pageParam: pageParam as Param }));
    }
    return { pages };
  });
  const { isOfNextPage, isFetching, error } = query.state;
  const pages = result.data?.pages ?? [];
  return {
    ...result,
    hasNextPage: pages.length > 0 && nextOf(pages) !== undefined,
    isFetchingNextPage: isFetching && isOfNextPage,
    isFetchNextPageError: error !== null && isOfNextPage,
    fetchNextPage: query.fetchNextPage,
  };
}

function useShared<Data>(
  options: SharedOptions<Data>,
  read: Read<Data>,
): { readonly query: Query<Data>; readonly result: UseQueryResult<Data> } {
  const {
    queryKey,
    enabled: isEnabled = true,
    staleTime = STALE_MS,
    refetchOnMount,
    refetchInterval,
  } = options;
  const query = useQueryClient().query<Data>(queryKey);
  const observer = useRef<Observer<Data>>(null as never);
  observer.current = { read, isEnabled, meta: options.meta, keptMs: options.gcTime };
  const subscribe = useCallback((listener: () => void) => query.subscribe(listener, observer), [query]);
  const state = useSyncExternalStore(subscribe, () => query.state);

  // biome-ignore lint/correctness/useExhaustiveDependencies: when the query is shown first, not when the options of this render differ.
  useEffect(() => {
    if (!isEnabled || !query.isStale(staleTime)) return;
    if (query.state.data === undefined || (refetchOnMount?.(query) ?? true)) void query.fetch();
  }, [query, isEnabled]);

  const everyMs =
    isEnabled && (refetchInterval instanceof Function ? refetchInterval(query) : refetchInterval);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the time counts from the last change of the state.
  useEffect(() => {
    if (!everyMs) return;
    const timer = setInterval(() => void (document.hidden || query.fetch()), everyMs);
    return () => clearInterval(timer);
  }, [query, state, everyMs]);

  const shown = useRef<{ readonly query: Query<Data>; readonly data: Data }>(undefined);
  const placeholder =
    state.data === undefined && state.error === null
      ? options.placeholderData?.(shown.current?.data, shown.current?.query)
      : undefined;
  if (state.data !== undefined) shown.current = { query, data: state.data };
  const data = state.data ?? placeholder;
  return {
    query,
    result: {
      data,
      error: state.error,
      isPending: data === undefined && state.error === null,
      isFetching: state.isFetching,
      isEnabled,
      isInvalidated: state.isInvalidated,
      isPlaceholderData: placeholder !== undefined,
      dataUpdatedAt: state.dataUpdatedAt,
      refetch: query.refetch,
    },
  };
}
