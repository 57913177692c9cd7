import { setImmediate as yieldToOthers } from "node:timers/promises";
import type { ParsedSeriesQuery } from "../../model/input/stats-series-input.ts";
import {
  BUCKETS,
  type Durations,
  OTHER_KEYS,
  quantileOf,
  ROLLUP_COUNTS,
  type RollupCount,
} from "../../model/rollup.ts";
import {
  ALL_SERIES,
  OTHER_SERIES,
  SERIES_KEYS_MAX,
  type Series,
  type SeriesMetric,
  type SpreadPoint,
  type StatsSeries,
} from "../../model/stats-series.ts";
import { rfc3339 } from "../../model/text/rfc3339.ts";
import type { RollupCursor, RollupRow, Storage } from "../../storage/storage.ts";

/** Rows that are read and added up in one turn of the event loop: a few milliseconds. */
const SLICE = 1_000;

/** The statistics of a tenant's tasks, from its rollups. */
export async function statsSeries(
  storage: Storage,
  tenant: string,
  query: ParsedSeriesQuery,
): Promise<StatsSeries> {
  const { metrics, by, step, from, points } = query;
  const read = (each: (row: RollupRow) => void) => readRows(storage, tenant, query, each);
  const named = by === "none" ? null : await busiestKeys(read);
  const byKey = new Map<string, KeyPoints>();
  if (by === "none") byKey.set(ALL_SERIES, new KeyPoints(points));
  for (const key of named ?? []) byKey.set(key, new KeyPoints(points));
  await read((row) => {
    const key = named === null ? ALL_SERIES : named.has(row.key) ? row.key : OTHER_SERIES;
    let own = byKey.get(key);
    if (own === undefined) {
      own = new KeyPoints(points);
      byKey.set(key, own);
    }
    own.add((row.at - from) / (step * 1_000), row);
  });
  const series = [...byKey].flatMap(([key, own]) => metrics.map((metric) => own.series(key, metric)));
  return { from: rfc3339(from), step, series };
}

async function readRows(
  storage: Storage,
  tenant: string,
  { by, step, from, points }: ParsedSeriesQuery,
  each: (row: RollupRow) => void,
): Promise<void> {
  const kind = by === "agent" ? "agent" : "lane";
  const range = { tenant, kind, step, from, to: from + points * step * 1_000, limit: SLICE } as const;
  for (let after: RollupCursor | null | undefined; after !== null; ) {
    const { rows, next } = await storage.rollups.read({ ...range, ...(after && { after }) });
    for (const row of rows) each(row);
    after = next;
    if (next !== null) await yieldToOthers();
  }
}

/** The keys with the most events, busiest first. A key without a row of its own in one minute may have one in another. */
async function busiestKeys(
  read: (each: (row: RollupRow) => void) => Promise<void>,
): Promise<ReadonlySet<string>> {
  const events = new Map<string, number>();
  await read(({ key, submitted, started, done, failed, cancelled }) => {
    events.set(key, (events.get(key) ?? 0) + submitted + started + done + failed + cancelled);
  });
  events.delete(OTHER_KEYS);
  const ranked = [...events].sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1));
  return new Set(ranked.slice(0, SERIES_KEYS_MAX).map(([key]) => key));
}

/** All points of one key. */
class KeyPoints {
  readonly #points: (Point | undefined)[];

  constructor(points: number) {
    this.#points = Array<Point | undefined>(points).fill(undefined);
  }

  add(index: number, row: RollupRow): void {
    const point = this.#points[index] ?? new Point();
    this.#points[index] = point;
    point.add(row);
  }

  series(key: string, metric: SeriesMetric): Series {
    if (metric === "waitMs" || metric === "runMs") {
      const time = metric === "waitMs" ? "wait" : "run";
      return { key, metric, points: this.#points.map((point) => spreadOf(point?.[time])) };
    }
    return { key, metric, points: this.#points.map((point) => point?.counts[metric] ?? 0) };
  }
}

class Point {
  readonly counts = Object.fromEntries(ROLLUP_COUNTS.map((count) => [count, 0])) as Record<
    RollupCount,
    number
  >;
  readonly wait = emptyDurations();
  readonly run = emptyDurations();

  add(row: RollupRow): void {
    for (const count of ROLLUP_COUNTS) this.counts[count] += row[count];
    addDurations(this.wait, row.wait);
    addDurations(this.run, row.run);
  }
}

interface Sum {
  readonly buckets: number[];
  max: number;
}

function emptyDurations(): Sum {
  return { buckets: Array<number>(BUCKETS).fill(0), max: 0 };
}

function addDurations(sum: Sum, { buckets, max }: Durations): void {
  for (const [n, count] of buckets.entries()) sum.buckets[n] = (sum.buckets[n] ?? 0) + count;
  sum.max = Math.max(sum.max, max);
}

function spreadOf(durations: Durations | undefined): SpreadPoint | null {
  if (durations === undefined) return null;
  const p50 = quantileOf(durations, 0.5);
  const p95 = quantileOf(durations, 0.95);
  return p50 === null || p95 === null ? null : { p50, p95, max: durations.max };
}
