import { RotaError } from "../model/errors.ts";
import { ConnectionError } from "./connection-error.ts";

/** What proxies respond while the server behind them is down. */
const AWAY: ReadonlySet<number> = new Set([502, 503, 504]);

/** Whether an error is temporary: Rota says so, or the server is down, as during a restart. */
export function isPassing(error: unknown): boolean {
  if (error instanceof RotaError) return error.retryable;
  return error instanceof ConnectionError && (error.status === undefined || AWAY.has(error.status));
}

/** The first and the longest pause between tries to reach a server that is down. */
const PAUSE_MS = { first: 250, max: 5_000 } as const;

/** The backoff after `failures` failures in a row, with jitter, so that clients do not all come back at once. */
export function pauseAfterFailures(
  failures: number,
  random: () => number,
  { first = PAUSE_MS.first, max = PAUSE_MS.max }: { readonly first?: number; readonly max?: number } = {},
): number {
  return Math.min(first * 2 ** Math.min(failures - 1, 30), max) * (0.5 + random() / 2);
}
