import { ROLLUP_COUNTS, ROLLUP_STEPS } from "./rollup.ts";

/** The metrics: counts, and how long tasks waited and ran. */
export const SERIES_METRICS = [...ROLLUP_COUNTS, "waitMs", "runMs"] as const;
export type SeriesMetric = (typeof SERIES_METRICS)[number];

export const SERIES_SPLITS = ["none", "lane", "agent"] as const;
export type SeriesSplit = (typeof SERIES_SPLITS)[number];

/** Seconds from one point to the next: minutes, hours or days of UTC. */
export const SERIES_STEPS = ROLLUP_STEPS;
export type SeriesStep = (typeof SERIES_STEPS)[number];

export const SERIES_POINTS_MAX = 1_500;
/** Lanes or agents that have a series of their own: the busiest. */
export const SERIES_KEYS_MAX = 20;
/** The keys of the series of all others, and of the one series without a split. */
export const OTHER_SERIES = "other";
export const ALL_SERIES = "all";

/** Statistics by minute, hour or day. */
export interface StatsSeries {
  /** The start of the first step, RFC 3339. */
  readonly from: string;
  /** Seconds from one point to the next. */
  readonly step: number;
  readonly series: readonly Series[];
}

/** `key`: a lane or an agent, `other` for all that have no series of their own, or `all` without a split. */
export type Series =
  | {
      readonly key: string;
      readonly metric: Exclude<SeriesMetric, "waitMs" | "runMs">;
      readonly points: readonly number[];
    }
  | {
      readonly key: string;
      readonly metric: "waitMs" | "runMs";
      /** Null: no task started, or none ended. */
      readonly points: readonly (SpreadPoint | null)[];
    };

/** Milliseconds. The first two are estimated from a histogram of 16 buckets, each twice as wide as the one before. */
export interface SpreadPoint {
  readonly p50: number;
  readonly p95: number;
  readonly max: number;
}
