import { useCallback, useEffect, useMemo, useState } from "react";
import type { EventPageFilter, RotaEvent } from "../../../../src/client/index.ts";
import { useSession } from "../../api/session.tsx";
import { useLiveEvents, useLiveState } from "../../live/live.tsx";
import { useInfiniteQuery } from "../../queries/use-query.ts";

const PAGE = 100;
/** New events beyond this are read from the log instead. */
const FRESH_MAX = 500;
/** A list that is scrolled by less than this shows new events at once. */
const TOP_PX = 60;

/** The log of events, newest first, with new ones on top. While the list is scrolled or paused, they are counted and not shown. */
export function useTail(filter: EventPageFilter) {
  const { client } = useSession();
  const { isPaused, status } = useLiveState();
  /** What came since the log was read, newest first. */
  const [fresh, setFresh] = useState<readonly RotaEvent[]>([]);
  /** Of these, the newest one that is shown. */
  const [shownSeq, setShownSeq] = useState(0);
  const query = useInfiniteQuery({
    queryKey: ["events", filter],
    queryFn: ({ signal, pageParam }) =>
      client.eventPage(
        // Further pages continue from where the last one ended.
        { ...filter, limit: PAGE, ...(pageParam !== undefined && { before: pageParam }) },
        { signal },
      ),
    initialPageParam: undefined as number | undefined,
    getNextPageParam: ({ next }) => next,
    // Events are added one by one. It is read anew when some were missed, and every two seconds while the server is busy.
    meta: { live: () => false, isHeld: () => scrollY >= TOP_PX },
  });
  const { refetch, isInvalidated, isFetching } = query;
  const { type, taskId, before } = filter;

  // biome-ignore lint/correctness/useExhaustiveDependencies: another list has nothing new yet.
  useEffect(() => setFresh([]), [type, taskId, before]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: what came before the stream began is in the log alone.
  useEffect(() => {
    if (status === "live" && !isPaused && scrollY < TOP_PX) void refetch();
  }, [status]);

  const take = useCallback(
    (events: readonly RotaEvent[]) => {
      const added = events.filter(
        (event) =>
          // What is read from a time in the past has nothing new on top.
          before === undefined &&
          (type === undefined || event.type === type) &&
          (taskId === undefined || event.taskId === taskId),
      );
      // Too many are read from the log when they are to be shown.
      if (added.length > 0) setFresh((now) => [...added.toReversed(), ...now].slice(0, FRESH_MAX));
    },
    [type, taskId, before],
  );
  useLiveEvents(take);

  const old = useMemo(() => query.data?.pages.flatMap((page) => page.events) ?? [], [query.data]);
  const readSeq = old[0]?.seq ?? 0;
  const isOverfull = fresh.length >= FRESH_MAX;
  useEffect(() => setFresh((now) => now.filter(({ seq }) => seq > readSeq)), [readSeq]);
  useEffect(() => {
    if (!isPaused && scrollY < TOP_PX) setShownSeq(fresh[0]?.seq ?? 0);
  }, [fresh, isPaused]);
  useEffect(() => {
    if (isOverfull && !isPaused && scrollY < TOP_PX) void refetch();
  }, [isOverfull, isPaused, refetch]);

  return {
    query,
    events: useMemo(
      () => [...fresh.filter(({ seq }) => seq > readSeq && seq <= shownSeq), ...old],
      [fresh, old, readSeq, shownSeq],
    ),
    newCount: fresh.filter(({ seq }) => seq > Math.max(readSeq, shownSeq)).length,
    isOutdated: isInvalidated && !isFetching,
    showNew: () => {
      setShownSeq(fresh[0]?.seq ?? 0);
      if (isOverfull || isInvalidated) void refetch();
      scrollTo({ top: 0 });
    },
  };
}
