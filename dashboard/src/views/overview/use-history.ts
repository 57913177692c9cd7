import { useSession } from "../../api/session.tsx";
import { useLiveState } from "../../live/live.tsx";
import { keepPreviousData, useQuery } from "../../queries/use-query.ts";
import { type History, RANGES, type RangeName, sumOf, toHistory } from "./history.ts";

/** The server updates the statistics every few seconds. */
const EVERY_MS = 10_000;
/** Who waits for the first task shall see it soon. */
const FIRST_EVERY_MS = 2_000;
const METRICS = ["submitted", "done", "failed", "tokens", "waitMs", "runMs"] as const;

/** The statistics of a range that ends now. */
export function useHistory(range: RangeName) {
  const { client } = useSession();
  const { isPaused } = useLiveState();
  return useQuery({
    queryKey: ["history", range],
    queryFn: async ({ signal }): Promise<History> => {
      const { ms, step } = RANGES[range];
      const stepMs = step * 1_000;
      const to = Math.ceil(Date.now() / stepMs) * stepMs;
      const [from, until] = [new Date(to - ms), new Date(to)];
      const query = {
        metrics: METRICS,
        by: "none",
        from,
        to: until,
        step,
      } as const;
      return toHistory(await client.statsSeries(query, { signal }));
    },
    refetchInterval: ({ state: { data } }) =>
      !isPaused && (data !== undefined && sumOf(data.submitted) === 0 ? FIRST_EVERY_MS : EVERY_MS),
    placeholderData: keepPreviousData,
  });
}
