import type { StatsSeries } from "../../../../src/client/index.ts";
import type { Points } from "../../parts/plot.tsx";

const HOUR_MS = 3_600_000;

/** The time ranges of the charts, by their name in the URL. */
export const RANGES = {
  "1h": { label: "1 h", words: "last hour", ms: HOUR_MS, step: 60, unit: "min" },
  "24h": { label: "24 h", words: "last 24 h", ms: 24 * HOUR_MS, step: 3_600, unit: "h" },
  "7d": { label: "7 d", words: "last 7 days", ms: 168 * HOUR_MS, step: 3_600, unit: "h" },
} as const;

export type RangeName = keyof typeof RANGES;

/** The statistics of a range, step by step. */
export interface History {
  /** When the first step begins. */
  readonly from: number;
  readonly stepMs: number;
  readonly submitted: Points;
  readonly done: Points;
  readonly failed: Points;
  readonly tokens: Points;
  readonly wait: { readonly p50: Points; readonly p95: Points };
  readonly run: { readonly p50: Points; readonly p95: Points };
}

/** Converts the response of the server for the charts. */
export function toHistory({ from, step, series }: StatsSeries): History {
  const pointsOf = (metric: string) => series.find((each) => each.metric === metric)?.points ?? [];
  const counts = (metric: string) => pointsOf(metric).map((point) => point as number);
  const times = (metric: string, part: "p50" | "p95") =>
    pointsOf(metric).map((point) => (typeof point === "object" && point !== null ? point[part] : null));
  return {
    from: Date.parse(from),
    stepMs: step * 1_000,
    submitted: counts("submitted"),
    done: counts("done"),
    failed: counts("failed"),
    tokens: counts("tokens"),
    wait: { p50: times("waitMs", "p50"), p95: times("waitMs", "p95") },
    run: { p50: times("runMs", "p50"), p95: times("runMs", "p95") },
  };
}

export function sumOf(points: Points): number {
  return points.reduce<number>((sum, value) => sum + (value ?? 0), 0);
}

export function mostOf(...lines: readonly Points[]): number {
  return Math.max(0, ...lines.flat().map((value) => value ?? 0));
}

/** The latest value, of a complete step if there is one; null: there is no value. */
export function lastOf(points: Points): number | null {
  const isKnown = (value: number | null) => value !== null;
  return points.slice(0, -1).findLast(isKnown) ?? points.at(-1) ?? null;
}

/** The success rate, like `99.1 %`; undefined: no task has ended. */
export function shareDone(done: number, failed: number): string | undefined {
  if (done + failed === 0) return undefined;
  const share = (done / (done + failed)) * 100;
  return `${share === 100 ? 100 : Math.min(share, 99.9).toFixed(1)}\u00a0%`;
}

/** The labels of the time axis, from left to right. */
export function axisLabels(
  { from, stepMs, done }: History,
  range: RangeName,
  timeZone?: string,
): readonly string[] {
  const MARKS = 6;
  const last = from + (done.length - 1) * stepMs;
  const times = Array.from({ length: MARKS }, (_, n) => from + ((last - from) / MARKS) * n);
  return [...times.map((at) => stepLabel(at, range, timeZone)), "now"];
}

/** `21:04`, or over several days `Mon 21:00`. */
export function stepLabel(at: number, range: RangeName, timeZone?: string): string {
  return new Date(at).toLocaleString("en-GB", {
    ...(range === "7d" ? { weekday: "short" } : {}),
    hour: "2-digit",
    minute: "2-digit",
    hourCycle: "h23",
    ...(timeZone !== undefined && { timeZone }),
  });
}
