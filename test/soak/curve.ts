import { percentile } from "../../bench/figure.ts";

/** A number that is measured again and again, and how far it may move and still be level. */
export interface Quantity {
  readonly name: string;
  readonly unit: string;
  /** What it must not do: memory must not grow, throughput must not fall. */
  readonly fault: "growing" | "falling";
  /** The share by which the last third may differ from the first. */
  readonly slack: number;
  /** And by how much at least, since a small number doubles easily. */
  readonly slackAtLeast: number;
}

export type Verdict = "level" | "growing" | "falling" | "too few looks";

export interface Judgement {
  readonly verdict: Verdict;
  /** The middle of each third. */
  readonly thirds: readonly [number, number, number];
}

/** Each third has at least this many: a single measurement must not decide. */
const LOOKS_PER_THIRD_MIN = 3;

/**
 * Compares the thirds of a curve by their medians, which a single hiccup does not move. It has moved if the last third
 * is beyond the slack, and the middle one already on the way: a step that was taken once is no trend.
 */
export function judge(quantity: Quantity, values: readonly number[]): Judgement {
  const length = Math.floor(values.length / 3);
  const middle = (from: number, to?: number) => percentile(values.slice(from, to), 50);
  const thirds = [middle(0, length), middle(length, -length), middle(-length)] as const;
  if (length < LOOKS_PER_THIRD_MIN) return { verdict: "too few looks", thirds };
  return { verdict: direction(quantity, thirds), thirds };
}

function direction(quantity: Quantity, [first, between, last]: Judgement["thirds"]): Verdict {
  const slack = Math.max(Math.abs(first) * quantity.slack, quantity.slackAtLeast);
  const moved = quantity.fault === "growing" ? last - first : first - last;
  // Where the first third is the way to a plateau, the other two are level: what is left to go is what counts.
  const still = quantity.fault === "growing" ? last - between : between - last;
  return moved > slack && still > slack / 3 ? quantity.fault : "level";
}

const SPARKS = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"] as const;

/** A line of so many signs at most; the lowest value is the lowest sign, unless the curve hardly moves. */
export function sparks(values: readonly number[], width = 40): string {
  const points = inColumns(values, width);
  const highest = Math.max(...points);
  const lowest = Math.min(...points);
  // What moves by a few percent is not to look like mountains.
  const span = Math.max(highest - lowest, Math.abs(highest) / 4);
  return points
    .map((value) => {
      const height = span === 0 ? 0 : (value - lowest) / span;
      return SPARKS[Math.min(Math.floor(height * SPARKS.length), SPARKS.length - 1)];
    })
    .join("");
}

/** As many means, each of neighbours, as fit into the width. */
function inColumns(values: readonly number[], width: number): number[] {
  const columns = Math.min(width, values.length);
  return Array.from({ length: columns }, (_, column) => {
    const from = Math.floor((column * values.length) / columns);
    const to = Math.floor(((column + 1) * values.length) / columns);
    const own = values.slice(from, to);
    return own.reduce((sum, value) => sum + value, 0) / own.length;
  });
}
