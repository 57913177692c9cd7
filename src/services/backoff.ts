export interface Backoff {
  readonly firstMs: number;
  readonly maxMs: number;
}

/** The wait after this many failures in a row: doubles up to the maximum, and is up to a quarter shorter at random. */
export function backoffMs(backoff: Backoff, failures: number, random: () => number): number {
  const fullMs = Math.min(backoff.firstMs * 2 ** Math.min(failures - 1, 30), backoff.maxMs);
  // Nodes that lost the same database should not all reconnect at the same time.
  return Math.ceil(fullMs * (1 - 0.25 * random()));
}
