import { useSession } from "../../api/session.tsx";
import { useLiveState } from "../../live/live.tsx";
import { useQuery } from "../../queries/use-query.ts";

const HOUR_MS = 3_600_000;
const EVERY_MS = 30_000;

/** How many tasks started in each lane, minute by minute, in the last hour. Lanes without any are missing. */
export function useLaneHistory(): ReadonlyMap<string, readonly number[]> {
  const { client } = useSession();
  const { isPaused } = useLiveState();
  const { data } = useQuery({
    queryKey: ["lanes", "history"],
    queryFn: ({ signal }) =>
      client.statsSeries(
        { metrics: ["started"], by: "lane", step: 60, from: new Date(Date.now() - HOUR_MS) },
        { signal },
      ),
    refetchInterval: isPaused ? false : EVERY_MS,
  });
  return new Map(data?.series.map(({ key, points }) => [key, points as readonly number[]]));
}
