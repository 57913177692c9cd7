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

/** The log of events, newest first, with new ones on top. While the list is scrolled, they are counted and not shown. */
export function useTail(filter: EventPageFilter) {
  const { client } = useSession();
  const { isPaused, status } = useLiveState();
  const [fresh, setFresh] = useState<readonly RotaEvent[]>([]);
  const [shown, setShown] = useState(0);
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
  });
  const { refetch } = query;
  const { type, taskId, before } = filter;
  // What is read from a time in the past has nothing new on top.
  const matches = (event: RotaEvent) =>
    before === undefined &&
    (type === undefined || event.type === type) &&
    (taskId === undefined || event.taskId === taskId);

  // biome-ignore lint/correctness/useExhaustiveDependencies: with the filters, and once it is live again, the list begins anew.
  useEffect(() => {
    setFresh([]);
    setShown(0);
    if (!isPaused && status === "live") void refetch();
  }, [type, taskId, before, isPaused, status]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: `matches` depends on these alone.
  const take = useCallback(
    (events: readonly RotaEvent[]) => {
      const added = isPaused ? [] : events.filter(matches).toReversed();
      if (added.length === 0) return;
      setFresh((current) => [...added, ...current]);
      if (scrollY < TOP_PX) setShown(Number.POSITIVE_INFINITY);
    },
    [type, taskId, before, isPaused],
  );
  useLiveEvents(take);
  useEffect(() => {
    if (shown === Number.POSITIVE_INFINITY) setShown(fresh.length);
    if (fresh.length <= FRESH_MAX) return;
    setFresh([]);
    setShown(0);
    void refetch();
  }, [fresh, shown, refetch]);

  const events = useMemo(() => {
    const old = query.data?.pages.flatMap((page) => page.events) ?? [];
    const newest = old[0]?.seq ?? 0;
    const seen = fresh.slice(Math.max(0, fresh.length - shown));
    return [...seen.filter(({ seq }) => seq > newest), ...old];
  }, [query.data, fresh, shown]);
  return {
    query,
    events,
    newCount: Math.max(0, fresh.length - shown),
    showNew: () => {
      setShown(fresh.length);
      scrollTo({ top: 0 });
    },
  };
}
