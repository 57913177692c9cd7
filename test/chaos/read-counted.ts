import type { StatsSeriesQuery } from "../../src/model/input/stats-series-input.ts";
import type { StatsSeries } from "../../src/model/stats-series.ts";
import { COUNTED_METRICS } from "./checks/counted.ts";
import type { Counted, History } from "./history.ts";

interface Counting {
  statsSeries(query: StatsSeriesQuery): Promise<StatsSeries>;
}

/** What the statistics over time say of a tenant, from the day of its first event to that of its last one. */
export async function readCounted(
  rota: Counting,
  tenantId: string,
  events: History["events"],
): Promise<Counted> {
  const times = events.map(({ timestamp }) => Date.parse(timestamp));
  const { series } = await rota.statsSeries({
    metrics: COUNTED_METRICS,
    step: 86_400,
    from: new Date(Math.min(...times)),
    to: new Date(Math.max(...times) + 1),
  });
  const sums = series.map(({ metric, points }) => [
    metric,
    (points as readonly number[]).reduce((sum, count) => sum + count, 0),
  ]);
  return { tenantId, counts: Object.fromEntries(sums) };
}
