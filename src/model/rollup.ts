/**
 * What is counted per minute, hour and day from the event log: the numbers behind `GET /v1/stats/series`. All storages
 * and the library share these rules.
 */

/** The dimensions of a series; `kind` in the tables. */
export const ROLLUP_KINDS = ["lane", "agent"] as const;
export type RollupKind = (typeof ROLLUP_KINDS)[number];

/** The seconds that one row covers, and how long such rows are kept. Days are in UTC. */
export const ROLLUP_STEPS = [60, 3_600, 86_400] as const;
export type RollupStep = (typeof ROLLUP_STEPS)[number];

const HOUR_MS = 3_600_000;
export const ROLLUP_RETENTION_MS: Readonly<Record<RollupStep, number>> = {
  60: 48 * HOUR_MS,
  3600: 90 * 24 * HOUR_MS,
  86400: 90 * 24 * HOUR_MS,
};

/** Lanes, and agents, of a tenant that have a row of their own in each minute, hour and day: the busiest. */
export const ROLLUP_KEYS_MAX = 100;
/** The key of the row that counts all others. No lane and no agent has this name. */
export const OTHER_KEYS = "";

/** The numbers that add up. */
export const ROLLUP_COUNTS = ["submitted", "started", "done", "failed", "cancelled", "tokens"] as const;
export type RollupCount = (typeof ROLLUP_COUNTS)[number];

/** Durations, each as a histogram and its largest value. */
export const ROLLUP_TIMES = ["wait", "run"] as const;
export type RollupTime = (typeof ROLLUP_TIMES)[number];

export const BUCKETS = 16;
/** From here on each bucket is twice as wide: the last one begins at 17.5 minutes. */
const FIRST_BUCKET_MS = 64;
const LAST_BUCKET_MS = FIRST_BUCKET_MS * 2 ** (BUCKETS - 2);
/** Where the buckets after the first one begin, in milliseconds. */
export const BUCKET_STARTS: readonly number[] = Array.from(
  { length: BUCKETS - 1 },
  (_, n) => FIRST_BUCKET_MS * 2 ** n,
);

export interface Durations {
  /** How many fell into each bucket. */
  readonly buckets: readonly number[];
  /** The longest; 0 when there is none. */
  readonly max: number;
}

/** The bucket of a duration in milliseconds. */
export function bucketOf(ms: number): number {
  const log2 = 31 - Math.clz32(Math.min(ms, LAST_BUCKET_MS));
  return Math.max(log2 - Math.log2(FIRST_BUCKET_MS) + 1, 0);
}

/** The start of the minute, hour or day that contains a time, all in milliseconds. */
export function stepStart(at: number, step: RollupStep): number {
  const stepMs = step * 1_000;
  return Math.floor(at / stepMs) * stepMs;
}

/**
 * Estimates the quantile of durations from their buckets: within a bucket, durations are assumed to be evenly distributed.
 * Null: there are none.
 *
 * @example
 * quantileOf({ buckets: [10, 10, ...], max: 100 }, 0.5); // 64
 */
export function quantileOf({ buckets, max }: Durations, part: number): number | null {
  const total = buckets.reduce((sum, count) => sum + count, 0);
  if (total === 0) return null;
  const wanted = total * part;
  let below = 0;
  for (const [n, count] of buckets.entries()) {
    if (count > 0 && below + count >= wanted) {
      const start = n === 0 ? 0 : (BUCKET_STARTS[n - 1] ?? 0);
      const end = Math.min(BUCKET_STARTS[n] ?? max, max);
      return Math.round(start + (end - start) * ((wanted - below) / count));
    }
    below += count;
  }
  return max;
}
