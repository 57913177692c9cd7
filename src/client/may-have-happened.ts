import type { ErrorCode, RotaError } from "../model/errors.ts";
import { ConnectionError } from "./connection-error.ts";

/** Rota refuses with these before it does anything. */
const REFUSED_AT_ONCE: ReadonlySet<ErrorCode> = new Set(["draining", "scheduler_disabled"]);

/**
 * Whether a request that failed may have been carried out all the same. Nobody knows that when somebody else on the way
 * answered, or nobody did. A server in trouble does not know it either: a database that broke off may have stored what
 * it was given.
 */
export function mayHaveHappened(error: RotaError | ConnectionError): boolean {
  if (error instanceof ConnectionError) return error.mayHaveHappened;
  return error.status >= 500 && !REFUSED_AT_ONCE.has(error.code);
}
