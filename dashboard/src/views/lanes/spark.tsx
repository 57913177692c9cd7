import { formatCount } from "../../parts/format.ts";

const [WIDTH, HEIGHT] = [96, 18];

/** The tasks that started in the last hour, as a small line. Not drawn if there were none. */
export function Spark({ points }: { readonly points: readonly number[] | undefined }) {
  // The current minute is incomplete.
  const past = points?.slice(0, -1) ?? [];
  const most = Math.max(...past);
  if (past.length < 2 || most === 0) return <span className="spark" />;
  const path = past.map((value, index) => {
    const x = (index / (past.length - 1)) * WIDTH;
    const y = HEIGHT - 1 - (value / most) * (HEIGHT - 2);
    return `${x.toFixed(1)} ${y.toFixed(1)}`;
  });
  const sum = past.reduce((total, value) => total + value, 0);
  return (
    <svg
      className="spark"
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      role="img"
      aria-label={`${formatCount(sum)} started in the last hour, at most ${formatCount(most)} in a minute`}
    >
      <title>{`${formatCount(sum)} started in the last hour`}</title>
      <path className="l" d={`M${path.join("L")}`} />
    </svg>
  );
}
