import { z } from "zod";
import { STATS_SERIES } from "../model/input/stats-series-input.ts";
import { SERIES_KEYS_MAX, SERIES_POINTS_MAX } from "../model/stats-series.ts";
import { errorAnswersWith } from "./error.ts";
import { querySchema } from "./input-schema.ts";

const key = z
  .string()
  .describe(
    "The lane or the agent; `other`: the sum of all without a series of their own; `all` with `by=none`.",
  );
const count = z.int();
const milliseconds = z.int().describe("Milliseconds.");

const counts = z
  .strictObject({
    key,
    metric: z.enum(["submitted", "started", "done", "failed", "cancelled", "tokens"]),
    points: z.array(count).readonly(),
  })
  .meta({
    id: "CountSeries",
    description: "The number of events, or of tokens, in each step.",
    examples: [{ key: "tasks", metric: "done", points: [3, 0, 12] }],
  });

const spreads = z
  .strictObject({
    key,
    metric: z.enum(["waitMs", "runMs"]),
    points: z
      .array(
        z
          .strictObject({ p50: milliseconds, p95: milliseconds, max: milliseconds })
          .nullable()
          .describe("Null: no task started (`waitMs`) or ended (`runMs`) in this step."),
      )
      .readonly(),
  })
  .meta({
    id: "SpreadSeries",
    description:
      "How long tasks waited or ran in each step. `p50` and `p95` are estimated from 16 buckets, each twice as wide as the one before: the first ends at 64 ms, the last begins at 17.5 minutes.",
    examples: [{ key: "tasks", metric: "waitMs", points: [{ p50: 40, p95: 180, max: 201 }, null] }],
  });

export const statsSeries = z
  .strictObject({
    from: z.string().describe("The start of the first step, RFC 3339."),
    step: z.int().describe("Seconds from one point to the next."),
    series: z.array(z.union([counts, spreads])).readonly(),
  })
  .meta({
    id: "StatsSeries",
    description: "One series for each key and metric, with a point for each step.",
    examples: [
      {
        from: "2026-05-11T07:00:00Z",
        step: 60,
        series: [
          { key: "tasks", metric: "done", points: [3, 0, 12] },
          { key: "tasks", metric: "runMs", points: [{ p50: 900, p95: 2_100, max: 2_240 }, null, null] },
        ],
      },
    ],
  });

const errorAnswers = errorAnswersWith({
  invalid_field: "`step` must be 60, 3600 or 86400: a minute, an hour or a day, not 300",
});

export const getStatsSeries = {
  operationId: "getStatsSeries",
  tags: ["scheduler"],
  summary: "Read statistics over time",
  description: `Statistics of your tenant over all nodes, at most a few seconds late. Minutes are kept for 48 hours, hours and days of UTC for 90 days. \`submitted\`, \`started\` (every attempt), \`done\`, \`failed\` and \`cancelled\` count events; \`waitMs\` is of first attempts, from when the task could start; \`runMs\` is of the attempt that ended with the task; \`tokens\` are those of all attempts, counted when the task ends. At most ${SERIES_POINTS_MAX} points, and ${SERIES_KEYS_MAX} keys beside \`other\`: the busiest. Costs a row for each point of a key.`,
  querystring: querySchema(STATS_SERIES),
  response: { 200: statsSeries, ...errorAnswers("storage_unavailable") },
};
