import { z } from "zod";
import { SERIES_KEYS_MAX, SERIES_METRICS, SERIES_POINTS_MAX } from "../model/stats-series.ts";
import { errorAnswersWith } from "./error.ts";

const key = z
  .string()
  .describe("The lane or the agent, `other` for all that have no series of their own, `all` with `by=none`.");
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
    description: "How often it happened, or how many tokens were used, in each step.",
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
          .describe("Null: no task started, or none ended."),
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
    from: z.string().describe("RFC 3339: when the first point begins."),
    step: z.int().describe("Seconds from one point to the next."),
    series: z.array(z.union([counts, spreads])).readonly(),
  })
  .meta({
    id: "StatsSeries",
    description: "What happened, step by step: a series for each key and metric.",
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
  summary: "What happened over time",
  description: `Of your tenant, over all nodes, a few seconds late at most. Minutes are kept for 48 hours, hours and days of UTC for 90 days. \`submitted\`, \`started\` (every attempt), \`done\`, \`failed\` and \`cancelled\` count events; \`waitMs\` is of first attempts, from when the task could start; \`runMs\` is of the attempt that ended with the task; \`tokens\` are those of all attempts, counted when the task ends. At most ${SERIES_POINTS_MAX} points, and ${SERIES_KEYS_MAX} keys beside \`other\`: the busiest. Costs a row for each point of a key.`,
  querystring: z.strictObject({
    metrics: z
      .string()
      .exactOptional()
      .describe(
        `Some of ${SERIES_METRICS.join(", ")}, with commas between; left out: submitted,started,done,failed.`,
      ),
    by: z.string().exactOptional().describe("`none`, `lane` or `agent`; left out: `none`."),
    from: z
      .string()
      .exactOptional()
      .describe("RFC 3339: the step it lies in is the first; left out: 60 steps before `to`."),
    to: z.string().exactOptional().describe("RFC 3339: steps that begin before it; left out: now."),
    step: z.string().exactOptional().describe("60, 3600 or 86400 seconds; left out: 60."),
  }),
  response: { 200: statsSeries, ...errorAnswers("storage_unavailable") },
};
