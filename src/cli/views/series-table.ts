import type { Series, StatsSeries } from "../../model/stats-series.ts";
import { oneLine } from "../terminal/display-text.ts";
import { tableLines } from "./table.ts";
import { shownSpan } from "./times.ts";

/** How many points are drawn: the last ones. */
const DRAWN_MAX = 60;
const BARS = "▁▂▃▄▅▆▇█";

/** Statistics over time as text, a line for each series. Durations are the 95th percentile. */
export function seriesLines({ series }: StatsSeries, width?: number): string[] {
  if (series.length === 0) return ["There are no data for that time."];
  return tableLines(
    [
      { title: "KEY", shrinksTo: 8 },
      { title: "METRIC" },
      { title: "TOTAL", align: "right" },
      { title: "PEAK", align: "right" },
      { title: "LAST", align: "right" },
      { title: "OVER TIME" },
    ],
    series.map(rowOf),
    { width },
  );
}

function rowOf(line: Series): string[] {
  const isCount = line.metric !== "waitMs" && line.metric !== "runMs";
  const numbers = numbersOf(line);
  const text = isCount ? String : shownSpan;
  const total = isCount ? String(numbers.reduce((sum, n) => sum + n, 0)) : "–";
  const peak = Math.max(0, ...numbers);
  return [oneLine(line.key), line.metric, total, text(peak), text(numbers.at(-1) ?? 0), drawn(numbers, peak)];
}

function numbersOf({ points }: Series): number[] {
  return points.map((point) => (typeof point === "number" ? point : (point?.p95 ?? 0)));
}

/** A bar for each of the last points, blank for zero. */
function drawn(numbers: readonly number[], peak: number): string {
  return numbers
    .slice(-DRAWN_MAX)
    .map((n) => (n === 0 ? " " : BARS[Math.min(Math.floor((n / peak) * BARS.length), BARS.length - 1)]))
    .join("");
}
