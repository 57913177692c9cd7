import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import { getStatsSeries } from "../../api/stats.ts";
import type { StatsSeriesQuery } from "../../model/input/stats-series-input.ts";
import { parseSeriesQuery } from "../../model/input/stats-series-input.ts";
import { SERIES_KEYS_MAX, type StatsSeries } from "../../model/stats-series.ts";
import type { RouteParts } from "../route-parts.ts";
import { withNumbers } from "./query-values.ts";
import { requiredRole } from "./required-role.ts";

export const statsRoutes: FastifyPluginAsyncZod<RouteParts> = async (app, { clock }) => {
  const declares = (_body: unknown, query: unknown) => ({ rows: rowsAsked(query as Query, clock.now()) });
  app.get(
    "/stats/series",
    requiredRole("read", getStatsSeries, declares),
    async ({ rota, query, charge }) => {
      const series = await rota.statsSeries(toSeriesQuery(query) as StatsSeriesQuery);
      charge?.settle({ rows: rowsIn(series) });
      return series;
    },
  );
};

type Query = Readonly<Partial<Record<keyof StatsSeriesQuery, string>>>;

function toSeriesQuery(query: Query): { readonly [Name in keyof Query]: unknown } {
  const { metrics, ...rest } = withNumbers(query, "step");
  return typeof metrics === "string" ? { ...rest, metrics: metrics.split(",") } : rest;
}

/** One row for each point of each key. The number of keys is known only afterwards. */
function rowsAsked(query: Query, now: number): number {
  const { by, points } = parseSeriesQuery(toSeriesQuery(query), now);
  return points * (by === "none" ? 1 : SERIES_KEYS_MAX);
}

function rowsIn({ series }: StatsSeries): number {
  return new Set(series.map(({ key }) => key)).size * (series[0]?.points.length ?? 0);
}
