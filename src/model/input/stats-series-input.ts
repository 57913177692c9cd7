import { stepStart } from "../rollup.ts";
import {
  SERIES_METRICS,
  SERIES_POINTS_MAX,
  SERIES_SPLITS,
  SERIES_STEPS,
  type SeriesMetric,
  type SeriesSplit,
  type SeriesStep,
} from "../stats-series.ts";
import { meantName } from "../text/nearest-name.ts";
import { optionalChoice } from "./choice-input.ts";
import {
  checkKnown,
  codeList,
  type Fields,
  invalidField,
  optionalMoment,
  quoted,
  withoutNulls,
} from "./field-checks.ts";

const DEFAULT_METRICS = ["submitted", "started", "done", "failed"] as const;
const DEFAULT_POINTS = 60;

export interface ParsedSeriesQuery {
  readonly metrics: readonly SeriesMetric[];
  readonly by: SeriesSplit;
  readonly step: SeriesStep;
  /** Milliseconds since 1970, the start of the first point. */
  readonly from: number;
  readonly points: number;
}

/** Parses the options of a request for statistics. Throws `invalid_field`. */
export function parseSeriesQuery(query: Fields, now: number): ParsedSeriesQuery {
  checkKnown(query, ["metrics", "by", "from", "to", "step"]);
  const given = withoutNulls(query);
  const metrics = parseMetrics(given["metrics"]);
  const by = optionalChoice(given, "by", SERIES_SPLITS) ?? "none";
  const step = parseStep(given["step"]);
  const stepMs = step * 1_000;
  const to = optionalMoment(given, "to") ?? now;
  const end = stepStart(to - 1, step) + stepMs;
  const from = stepStart(optionalMoment(given, "from") ?? end - DEFAULT_POINTS * stepMs, step);
  const points = (end - from) / stepMs;
  if (points < 1) throw invalidField("to", "`to` must be after `from`");
  if (points > SERIES_POINTS_MAX) {
    throw invalidField(
      "from",
      `from \`from\` to \`to\` there are ${points} steps of ${step} seconds, and a series has ${SERIES_POINTS_MAX} points at most: take a larger \`step\`, or a later \`from\``,
    );
  }
  return { metrics, by, step, from, points };
}

function parseMetrics(metrics: unknown): readonly SeriesMetric[] {
  if (metrics === undefined) return DEFAULT_METRICS;
  if (!Array.isArray(metrics) || metrics.length === 0) {
    throw invalidField("metrics", `\`metrics\` must name at least one of ${codeList(SERIES_METRICS)}`);
  }
  for (const metric of metrics) {
    if (SERIES_METRICS.includes(metric)) continue;
    const nearest = typeof metric === "string" ? meantName(metric, SERIES_METRICS) : undefined;
    const hint =
      nearest === undefined ? `known are ${codeList(SERIES_METRICS)}` : `did you mean \`${nearest}\`?`;
    throw invalidField("metrics", `\`metrics\` has no ${quoted(metric)}: ${hint}`);
  }
  return [...new Set(metrics as SeriesMetric[])];
}

function parseStep(step: unknown): SeriesStep {
  const known = SERIES_STEPS.find((candidate) => candidate === (step ?? 60));
  if (known !== undefined) return known;
  throw invalidField(
    "step",
    `\`step\` must be 60, 3600 or 86400: a minute, an hour or a day, not ${quoted(step)}`,
  );
}
