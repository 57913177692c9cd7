import { RotaError } from "../model/errors.ts";
import { ConnectionError } from "./connection-error.ts";

/** What proxies answer while the server behind them is not there. */
const AWAY: ReadonlySet<number> = new Set([502, 503, 504]);

/** Whether an error is one that passes by itself: Rota says so, or is not there, as while it is started anew. */
export function isPassing(error: unknown): boolean {
  if (error instanceof RotaError) return error.retryable;
  return error instanceof ConnectionError && (error.status === undefined || AWAY.has(error.status));
}

/** Pauses between tries to reach a server that is away, from the first on. */
const PAUSE_MS = { first: 250, max: 5_000 } as const;

/** How long to wait after so many failures in a row, with chance, so that not all clients come back at once. */
export function pauseAfterFailures(
  failures: number,
  random: () => number,
  { first = PAUSE_MS.first, max = PAUSE_MS.max }: { readonly first?: number; readonly max?: number } = {},
): number {
  return Math.min(first * 2 ** Math.min(failures - 1, 30), max) * (0.5 + random() / 2);
}
