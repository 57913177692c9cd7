export interface Backoff {
  readonly firstMs: number;
  readonly maxMs: number;
}

/** The wait after so many failures in a row: doubling, up to the maximum, up to a quarter shorter by chance. */
export function backoffMs(backoff: Backoff, failures: number, random: () => number): number {
  const fullMs = Math.min(backoff.firstMs * 2 ** Math.min(failures - 1, 30), backoff.maxMs);
  // Nodes that lost the same database should not all come back at the same moment.
  return Math.ceil(fullMs * (1 - 0.25 * random()));
}
