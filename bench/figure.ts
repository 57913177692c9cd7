/** One number that was measured, or a ratio of two. */
export interface Figure {
  readonly name: string;
  readonly unit: Unit;
  readonly value: number;
  /** Every repetition, in the order they were taken. */
  readonly runs: readonly number[];
  /** Null: it is only reported. */
  readonly goal: Goal | null;
}

export type Unit = "tasks/s" | "s" | "ms" | "µs" | "MiB" | "KiB" | "count" | "percent" | "share" | "times";

export type Goal =
  /** `aim`: what we would like, beyond what we promise. */
  { readonly atLeast: number; readonly aim?: number } | { readonly below: number };

/** The median of the repetitions. */
export function figure(name: string, unit: Unit, runs: readonly number[], goal: Goal | null = null): Figure {
  return { name, unit, value: median(runs), runs, goal };
}

/**
 * How one thing compares with another that was measured in turns with it: the median of the ratios of each turn, so
 * that a turn in which the machine was slow is slow for both.
 */
export function shareOf(
  name: string,
  { of, against, goal = null }: { of: readonly number[]; against: readonly number[]; goal?: Goal | null },
): Figure {
  const ratios = of.map((value, turn) => value / (against[turn] ?? Number.NaN));
  return figure(name, "share", ratios, goal);
}

export function isMet({ value, goal }: Figure): boolean | null {
  if (goal === null) return null;
  return "below" in goal ? value < goal.below : value >= goal.atLeast;
}

function median(values: readonly number[]): number {
  return percentile(values, 50);
}

/** The smallest value that at least `percent` of them do not exceed; the mean of the middle two for an even median. */
export function percentile(values: readonly number[], percent: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const position = (percent / 100) * sorted.length;
  const at = (index: number) => sorted[Math.min(Math.max(index, 0), sorted.length - 1)] ?? Number.NaN;
  if (percent === 50 && Number.isInteger(position)) return (at(position - 1) + at(position)) / 2;
  return at(Math.ceil(position) - 1);
}
