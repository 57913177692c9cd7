import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import { getStatsSeries } from "../../api/stats.ts";
import type { StatsSeries, StatsSeriesQuery } from "../../model/stats-series.ts";
import { SERIES_KEYS_MAX, SERIES_POINTS_MAX, SERIES_STEPS } from "../../model/stats-series.ts";
import type { RouteParts } from "../routes.ts";
import { may } from "./may.ts";
import { withNumbers } from "./query-values.ts";

export const statsRoutes: FastifyPluginAsyncZod<RouteParts> = async (app) => {
  app.get(
    "/stats/series",
    may("read", getStatsSeries, (_body, query) => ({ rows: rowsAsked(query) })),
    async ({ rota, query, charge }) => {
      const { metrics, ...rest } = query;
      const named = metrics === undefined ? {} : { metrics: metrics.split(",").map((name) => name.trim()) };
      const series = await rota.statsSeries({ ...withNumbers(rest, "step"), ...named } as StatsSeriesQuery);
      charge?.settle({ rows: rowsIn(series) });
      return series;
    },
  );
};

/** What is no time is refused later; until then it costs what the usual 60 points do. */
function rowsAsked(query: unknown): number {
  const { by, from, to, step } = query as Record<string, string | undefined>;
  const keys = by === "lane" || by === "agent" ? SERIES_KEYS_MAX : 1;
  const stepMs = (SERIES_STEPS.find((known) => String(known) === step) ?? 60) * 1_000;
  const end = to === undefined ? Date.now() : Date.parse(to);
  const points = from === undefined ? 60 : Math.ceil((end - Date.parse(from)) / stepMs);
  return keys * (points > 0 ? Math.min(points, SERIES_POINTS_MAX) : 60);
}

function rowsIn({ series }: StatsSeries): number {
  return new Set(series.map(({ key }) => key)).size * (series[0]?.points.length ?? 0);
}
