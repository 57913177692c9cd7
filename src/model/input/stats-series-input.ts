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
import { codeList, type Fields, invalidField, knownHint, quoted } from "./field-checks.ts";
import { choice, time } from "./kinds.ts";
import { readFields } from "./read-fields.ts";
import { type FilterSchema, type InputOf, type Kind, optional } from "./schema.ts";

const DEFAULT_METRICS = ["submitted", "started", "done", "failed"] as const;
const DEFAULT_POINTS = 60;

/** Which statistics to read. */
export const STATS_SERIES = {
  noun: "query",
  fields: {
    metrics: optional(metrics(), {
      description: `Some of ${SERIES_METRICS.join(", ")}, separated by commas.`,
      default: DEFAULT_METRICS.join(","),
    }),
    by: optional(choice(SERIES_SPLITS), {
      description: "`none`, `lane` or `agent`: one series for each, or a single one.",
      default: "`none`",
    }),
    from: optional(time(), {
      description: "RFC 3339, rounded down to a whole step.",
      default: "60 steps before `to`",
    }),
    to: optional(time(), { description: "RFC 3339, rounded up to a whole step.", default: "now" }),
    step: optional(step(), { description: "60, 3600 or 86400 seconds.", default: "60" }),
  },
} as const satisfies FilterSchema;

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
  const {
    metrics = DEFAULT_METRICS,
    by = "none",
    step = 60,
    to = now,
    ...range
  } = readFields(STATS_SERIES, query);
  const stepMs = step * 1_000;
  const end = stepStart(to - 1, step) + stepMs;
  const from = stepStart(range.from ?? end - DEFAULT_POINTS * stepMs, step);
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

function metrics(): Kind<readonly SeriesMetric[]> {
  return {
    shape: { type: "list", of: { type: "choice", choices: SERIES_METRICS } },
    read: (value, field) => {
      if (!Array.isArray(value) || value.length === 0) {
        throw invalidField(field, `\`${field}\` must name at least one of ${codeList(SERIES_METRICS)}`);
      }
      const wrong: unknown = value.find((metric) => !SERIES_METRICS.includes(metric));
      if (wrong === undefined) return [...new Set(value as SeriesMetric[])];
      throw invalidField(
        field,
        `\`${field}\` has no ${quoted(wrong)}: ${knownHint(String(wrong), SERIES_METRICS)}`,
      );
    },
  };
}

function step(): Kind<SeriesStep> {
  return {
    shape: { type: "integer" },
    read: (value, field) => {
      const known = SERIES_STEPS.find((candidate) => candidate === value);
      if (known !== undefined) return known;
      throw invalidField(
        field,
        `\`${field}\` must be 60, 3600 or 86400: a minute, an hour or a day, not ${quoted(value)}`,
      );
    },
  };
}

export type StatsSeriesQuery = InputOf<typeof STATS_SERIES.fields>;
