import { DatabaseError } from "pg";
import { RotaError } from "../../model/errors.ts";

/**
 * Classes of SQLSTATE that say that the statement or its values were the trouble: data, constraints, limits, names and
 * our own exceptions. Anything else passes: a restart, a fail-over that still refuses to write, a lock held too long.
 */
const STATEMENT_FAULTS = ["22", "23", "42", "54", "P0"];
/** Deadlock and serialization failure: the transaction did nothing and may simply be tried again. */
const TRY_AGAIN = ["40001", "40P01"];
const UNIQUE_VIOLATION = "23505";
/** Raised by our own functions when a batch has a key that was used for another request. */
export const BATCH_CONFLICT = "P0409";

export function isTransient(error: unknown): boolean {
  return error instanceof DatabaseError && TRY_AGAIN.includes(error.code ?? "");
}

export function isUniqueViolation(error: unknown): boolean {
  const cause = error instanceof RotaError ? error.cause : error;
  return cause instanceof DatabaseError && cause.code === UNIQUE_VIOLATION;
}

/** Which task of a batch was refused, and what its key had made before; null: the error is another one. */
export function batchConflictOf(error: unknown): { taskId: string; refused: string } | null {
  if (!(error instanceof DatabaseError) || error.code !== BATCH_CONFLICT) return null;
  return JSON.parse(error.detail ?? "{}");
}

/** A database that is away is something to wait for; anything else is a fault of ours and stays what it is. */
export function toRotaError(error: unknown): unknown {
  if (error instanceof RotaError || !(error instanceof Error)) return error;
  if (error instanceof DatabaseError && isStatementFault(error)) return error;
  return new RotaError("storage_unavailable", `PostgreSQL: ${describe(error)}`, { cause: error });
}

function isStatementFault(error: DatabaseError): boolean {
  return STATEMENT_FAULTS.some((prefix) => error.code?.startsWith(prefix));
}

/** Connecting to a name with several addresses fails with one error for each and no message of its own. */
function describe(error: Error): string {
  if (error instanceof AggregateError)
    return error.errors.map((cause) => String(cause?.message ?? cause)).join("; ");
  return error.message;
}
