import type { ErrorCode, RotaError } from "../model/errors.ts";
import { ConnectionError } from "./connection-error.ts";

/** Rota refuses requests with these codes before it does anything. */
const REFUSED_AT_ONCE: ReadonlySet<ErrorCode> = new Set(["draining", "scheduler_disabled"]);

/**
 * Whether the server may have carried out a failed request. That is unknown if there was no response, or one of a proxy. It is
 * also unknown after a server error: a database that broke off may have committed.
 */
export function mayHaveHappened(error: RotaError | ConnectionError): boolean {
  if (error instanceof ConnectionError) return error.mayHaveHappened;
  return error.status >= 500 && !REFUSED_AT_ONCE.has(error.code);
}
