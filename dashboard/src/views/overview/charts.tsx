import { useState } from "react";
import { formatCount, formatDuration, formatShortCount, sayDuration } from "../../parts/format.ts";
import { niceCount, niceDuration } from "../../parts/nice-scale.ts";
import { Plot, type Points } from "../../parts/plot.tsx";
import { Link } from "../../parts/router.tsx";
import { useTimeZone } from "../../parts/zone.ts";
import {
  axisLabels,
  type History,
  lastOf,
  mostOf,
  RANGES,
  type RangeName,
  stepLabel,
  sumOf,
} from "./history.ts";

/** Throughput, and how long tasks waited for their start, over the same time. */
export function Charts({ history, range }: { readonly history: History; readonly range: RangeName }) {
  const { submitted, done, failed, tokens, wait, run, from, stepMs } = history;
  const { words, unit } = RANGES[range];
  const [at, setAt] = useState<number>();
  const zone = useTimeZone();
  const titleOf = (index: number) => {
    const start = from + index * stepMs;
    return `${stepLabel(start, range, zone)} – ${stepLabel(start + stepMs, range, zone).slice(-5)}`;
  };
  const countAt = (points: Points, index: number) => formatCount(points[index] ?? 0);
  const waitAt = (points: Points, index: number) => formatDuration(points[index] ?? undefined);
  // The current minute is left out: it is incomplete and would look like a sudden drop. The current hour is shown.
  const lineOf = (points: Points) => (range === "1h" ? [...points.slice(0, -1), null] : points);
  const max = niceCount(mostOf(lineOf(submitted), lineOf(done)));
  const spent = sumOf(tokens);
  const [p50, p95] = [lastOf(wait.p50), lastOf(wait.p95)];
  return (
    <>
      <div className="cell-head">
        <h2>Throughput</h2>
        {spent > 0 && (
          <Link className="muted" href="/agents">
            {formatShortCount(spent)} tokens
          </Link>
        )}
        <span className="more legend">
          <span>
            <i />
            Done
          </span>
          <span>
            <i className="q" />
            Submitted
          </span>
          <span>
            <i className="b" />
            Failed
          </span>
        </span>
      </div>
      <Plot
        label={`Tasks in the ${words}: ${formatCount(sumOf(submitted))} submitted, ${formatCount(sumOf(done))} done, ${formatCount(sumOf(failed))} failed.`}
        height={164}
        max={max}
        middle={axisCount(max / 2)}
        format={(value) => `${axisCount(value)} / ${unit}`}
        lines={[lineOf(done), lineOf(submitted)]}
        isArea
        bars={failed}
        tip={(index) => ({
          title: titleOf(index),
          rows: [
            ["Submitted", countAt(submitted, index)],
            ["Done", countAt(done, index)],
            ["Failed", countAt(failed, index)],
            ["Tokens", formatShortCount(tokens[index] ?? 0)],
          ],
        })}
        at={at}
        onLook={setAt}
      />
      <div className="cell-head plot-second">
        <h2>Wait before start</h2>
        <span className="more legend">
          <span>
            <i />
            p95
          </span>
          <span>
            <i className="q" />
            p50
          </span>
        </span>
      </div>
      <Plot
        label={
          p50 === null || p95 === null
            ? `No task started in the ${words}.`
            : `Wait before start in the ${words}: most recently, half of the tasks waited at most ${sayDuration(p50)}, and 95 % at most ${sayDuration(p95)}.`
        }
        height={64}
        max={niceDuration(mostOf(lineOf(wait.p50), lineOf(wait.p95)))}
        format={sayDuration}
        lines={[lineOf(wait.p95), lineOf(wait.p50)]}
        tip={(index) => ({
          title: titleOf(index),
          rows: [
            ["Wait p95", waitAt(wait.p95, index)],
            ["Wait p50", waitAt(wait.p50, index)],
            ["Run p95", waitAt(run.p95, index)],
            ["Run p50", waitAt(run.p50, index)],
          ],
        })}
        at={at}
        onLook={setAt}
      />
      <div className="xaxis" aria-hidden="true">
        {axisLabels(history, range, zone).map((label, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: they have no other name.
          <span key={index}>{label}</span>
        ))}
      </div>
    </>
  );
}

/** `500`, `2k`: beside the axis there is room for few digits. */
function axisCount(value: number): string {
  return formatShortCount(value).replace(".0", "");
}
