import { type CSSProperties, type KeyboardEvent, type PointerEvent, useId } from "react";

/** One value for each time step; null: no data. */
export type Points = readonly (number | null)[];

interface PlotProps {
  /** Describes the chart to screen readers. */
  readonly label: string;
  readonly height: number;
  /** The value at the top of the axis. */
  readonly max: number;
  readonly format: (value: number) => string;
  /** The label of the middle line. Absent: there is none. */
  readonly middle?: string;
  /** The first is solid, the second dotted. */
  readonly lines: readonly [Points, Points];
  /** Whether the area below the first line is filled. */
  readonly isArea?: boolean;
  /** Bars below the base line, to the scale of the lines as far as there is room. */
  readonly bars?: Points;
  /** Labels and values beside the line that follows the pointer. */
  readonly tip: (index: number) => {
    readonly title: string;
    readonly rows: readonly (readonly [string, string])[];
  };
  /** The step under the pointer; undefined: none. Charts with the same time axis share it. */
  readonly at: number | undefined;
  readonly onLook: (index: number | undefined) => void;
}

const WIDTH = 1_000;
const TOP = 12;
const BARS = 32;

/** A line chart over time. The pointer and the arrow keys select single steps. */
export function Plot(props: PlotProps) {
  const { label, height, max, format, middle, lines, isArea = false, bars, tip, at, onLook } = props;
  const base = bars === undefined ? height : height - BARS;
  const count = lines[0].length;
  const x = (index: number) => (count < 2 ? 0 : (index / (count - 1)) * WIDTH);
  const y = (value: number) => base - (value / max) * (base - TOP);
  const [main, quiet] = lines.map((points) => pathOf(points, x, y));
  const bar = (WIDTH / count / 3) * 2;
  const labelId = useId();
  const shown = at === undefined || at >= count ? undefined : tip(at);
  const last = count - 1;
  const lookAt = ({ currentTarget, clientX }: PointerEvent) => {
    const { left, width } = currentTarget.getBoundingClientRect();
    onLook(Math.min(last, Math.max(0, Math.round(((clientX - left) / width) * last))));
  };
  const step = (event: KeyboardEvent) => {
    const to = { ArrowLeft: (at ?? count) - 1, ArrowRight: (at ?? -1) + 1, Home: 0, End: last }[event.key];
    if (event.key === "Escape") onLook(undefined);
    if (to === undefined) return;
    event.preventDefault();
    onLook(Math.min(last, Math.max(0, to)));
  };
  return (
    <div className="plot" style={{ "--h": `${height}px` } as CSSProperties}>
      <svg viewBox={`0 0 ${WIDTH} ${height}`} preserveAspectRatio="none" role="img" aria-labelledby={labelId}>
        <title id={labelId}>{label}</title>
        <path
          className="grid"
          d={`M0 ${TOP}H${WIDTH}${middle === undefined ? "" : `M0 ${(TOP + base) / 2}H${WIDTH}`}`}
        />
        <path className="grid base" d={`M0 ${base}H${WIDTH}`} />
        {isArea && main !== "" && <path className="area" d={`${main}V${base}H0z`} />}
        <path className="ln ln-quiet" d={quiet} />
        <path className="ln ln-main" d={main} />
        {bars?.map(
          (value, index) =>
            value !== null &&
            value > 0 && (
              <rect
                // biome-ignore lint/suspicious/noArrayIndexKey: steps of time stay where they are.
                key={index}
                className="bad"
                x={Math.min(WIDTH - bar, Math.max(0, x(index) - bar / 2))}
                y={base + 3}
                width={bar}
                height={Math.min(BARS - 6, Math.max(2, base - y(value)))}
              />
            ),
        )}
      </svg>
      <span className="y" style={{ top: TOP }}>
        {format(max)}
      </span>
      {middle !== undefined && (
        <span className="y" style={{ top: (TOP + base) / 2 }}>
          {middle}
        </span>
      )}
      <div
        className="look"
        role="slider"
        tabIndex={0}
        aria-label={`Look along: ${label}`}
        aria-valuemin={0}
        aria-valuemax={Math.max(0, last)}
        aria-valuenow={at ?? last}
        aria-valuetext={shown && `${shown.title}: ${shown.rows.map((row) => row.join(" ")).join(", ")}`}
        onPointerMove={lookAt}
        onPointerLeave={() => onLook(undefined)}
        onBlur={() => onLook(undefined)}
        onKeyDown={step}
      />
      {shown !== undefined && at !== undefined && (
        <div className="tip" aria-hidden="true" style={{ left: `${x(at) / (WIDTH / 100)}%` }}>
          <div className={at > count / 2 ? "tip-box tip-left" : "tip-box"}>
            <b>{shown.title}</b>
            {shown.rows.map(([what, value]) => (
              <span key={what} className="tip-row">
                <span className="sub">{what}</span> <span>{value}</span>
              </span>
            ))}
          </div>
        </div>
      )}
    </div>
  );
}

/** A single value between two gaps is a stroke of this length, so that it is seen. */
const LONE = 12;

/** A line with gaps where there is no data. */
function pathOf(points: Points, x: (index: number) => number, y: (value: number) => number): string {
  let path = "";
  for (const [index, value] of points.entries()) {
    if (value === null) continue;
    const isFirst = index === 0 || points[index - 1] === null;
    const isLone = isFirst && (points[index + 1] ?? null) === null;
    const at = isLone ? Math.min(x(index), WIDTH - LONE) : x(index);
    path += `${isFirst ? "M" : "L"}${at.toFixed(1)} ${y(value).toFixed(1)}`;
    if (isLone) path += `h${LONE}`;
  }
  return path;
}
