import type { Run, RunStatus } from "../../../../src/client/index.ts";
import { countOf, formatDuration } from "../../parts/format.ts";
import type { Glyph } from "../../parts/state.tsx";

export const BARS_MAX = 30;

const STEP = 6;
const BASE = 22;
const LOWEST = 5;
const HIGHEST = 17;

export const RUN_GLYPHS: Readonly<Record<RunStatus, Glyph>> = {
  running: "running",
  succeeded: "done",
  failed: "failed",
  skipped: "skipped",
  missed: "missed",
};

/** How long a run took. Undefined: it never ran, or still runs. */
export function tookMs({ started_at, completed_at, status }: Run): number | undefined {
  const hasRun = status === "succeeded" || status === "failed";
  return hasRun && started_at > 0 && completed_at > 0 ? (completed_at - started_at) * 1_000 : undefined;
}

/** `3m 12s`, `<1s`: the times of runs are whole seconds. */
export function tookText(run: Run): string {
  const ms = tookMs(run);
  return ms === 0 ? "<1s" : formatDuration(ms);
}

/** `30 runs: 2 skipped, 1 failed, 27 done`. */
function sayRuns(runs: readonly Run[]): string {
  if (runs.length === 0) return "no runs yet";
  const kinds = (["missed", "failed", "skipped", "running", "succeeded"] as const).flatMap((status) => {
    const count = runs.filter((run) => run.status === status).length;
    return count === 0 ? [] : [`${count} ${RUN_GLYPHS[status]}`];
  });
  return `${countOf(runs.length, "run")}: ${kinds.join(", ")}`;
}

/** The last runs as bars, newest at the right. The height is the run time, the shape the outcome. */
export function RunBars({ runs }: { readonly runs: readonly Run[] }) {
  const shown = runs.slice(0, BARS_MAX).toReversed();
  const longest = Math.max(1, ...shown.map((run) => tookMs(run) ?? 0));
  return (
    <svg
      className="spark"
      viewBox={`0 0 ${BARS_MAX * STEP} ${BASE}`}
      preserveAspectRatio="xMinYMid meet"
      role="img"
      aria-label={sayRuns(shown)}
    >
      {shown.map((run, index) => (
        <Bar key={run.id} run={run} x={index * STEP} longest={longest} />
      ))}
    </svg>
  );
}

interface BarProps {
  readonly run: Run;
  readonly x: number;
  readonly longest: number;
}

function Bar({ run, x, longest }: BarProps) {
  const height = LOWEST + Math.round(((HIGHEST - LOWEST) * (tookMs(run) ?? longest)) / longest);
  switch (run.status) {
    case "failed":
      return <path className="bad" d={`M${x} 22V8h4v14zM${x} 5.5V3h4v2.5z`} />;
    case "skipped":
      return <rect className="skip" x={x + 0.5} y={17.5} width={3} height={4} />;
    case "missed":
      return <path className="miss" d={`M${x} 17l4 4M${x + 4} 17l-4 4`} />;
    case "running":
    case "succeeded":
      return (
        <rect
          className={run.status === "running" ? "now" : "ok"}
          x={x}
          y={BASE - height}
          width={4}
          height={height}
        />
      );
  }
}

/** The legend of the shapes. */
export function BarsLegend() {
  return (
    <p className="legend bars-legend" aria-hidden="true">
      <span>
        <svg className="spark" viewBox="0 0 4 14">
          <rect className="ok" width={4} height={14} />
        </svg>
        done, height is run time
      </span>
      <span>
        <svg className="spark" viewBox="0 6 4 16">
          <path className="bad" d="M0 22V11h4v11zM0 8.5V6h4v2.5z" />
        </svg>
        failed
      </span>
      <span>
        <svg className="spark" viewBox="0 -5 4 10">
          <rect className="skip" x={0.5} y={0.5} width={3} height={4} />
        </svg>
        skipped
      </span>
      <span>
        <svg className="spark" viewBox="0 -3 5 10">
          <path className="miss" d="M.5 .5l4 4M4.500 .5l-4 4" />
        </svg>
        missed
      </span>
    </p>
  );
}
