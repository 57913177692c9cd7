const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
/** Possible ends of an axis of durations, in milliseconds. */
const DURATIONS: readonly number[] = [
  ...[10, 20, 50, 100, 200, 500],
  ...[1, 2, 5, 10, 20, 30].map((count) => count * SECOND),
  ...[1, 2, 5, 10, 20, 30].map((count) => count * MINUTE),
  ...[1, 2, 6, 12, 24, 48, 168].map((count) => count * HOUR),
];

/** The smallest round end of an axis up to `most`: 2, 4, 10, 12, 30, 80 … Half of it is an integer too. */
export function niceCount(most: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(most, 1)));
  const ends = [1, 1.2, 1.6, 2, 3, 4, 6, 8, 10].map((step) => step * power);
  return ends.find((end) => end >= most && end % 2 === 0) ?? most;
}

/** The same for milliseconds. */
export function niceDuration(most: number): number {
  return DURATIONS.find((end) => end >= most) ?? most;
}
