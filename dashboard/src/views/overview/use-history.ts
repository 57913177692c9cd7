import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { type Series, useAsk } from "../../api/routes-to-come.ts";
import { useLiveState } from "../../live/live.tsx";
import { type History, RANGES, type RangeName, toHistory } from "./history.ts";

/** The server counts every few seconds. */
const EVERY_MS = 10_000;
const METRICS = "submitted,done,failed,waitMs";

/** What happened in a range, which moves on. */
export function useHistory(range: RangeName) {
  const ask = useAsk();
  const { isPaused } = useLiveState();
  return useQuery({
    queryKey: ["history", range],
    queryFn: async ({ signal }): Promise<History> => {
      const { ms, stepMs } = RANGES[range];
      const to = Math.ceil(Date.now() / stepMs) * stepMs;
      const [from, until] = [new Date(to - ms).toISOString(), new Date(to).toISOString()];
      const answer = await ask<Series>(
        `/v1/stats/series?metrics=${METRICS}&by=none&from=${from}&to=${until}&step=${stepMs / 1_000}`,
        signal,
      );
      return toHistory(answer);
    },
    refetchInterval: isPaused ? false : EVERY_MS,
    placeholderData: keepPreviousData,
  });
}
