import { DatabaseError } from "pg";
import { RotaError } from "../../../model/errors.ts";
import { boundExceeded } from "../../submit-bounds.ts";
import { tooManyOfMaker } from "../../too-many-of-maker.ts";

/**
 * SQLSTATE classes of errors caused by the statement or its values: data, constraints, limits, names and our own exceptions. All
 * other errors are temporary: a restart, a fail-over that still refuses writes, a lock held too long.
 */
const STATEMENT_FAULTS = ["22", "23", "42", "54", "P0"];
/** Deadlock and serialization failure: the transaction was rolled back and can be retried. */
const TRY_AGAIN = ["40001", "40P01"];
const UNIQUE_VIOLATION = "23505";
/** A statement names a function, type or schema that does not exist. */
const UNKNOWN_NAMES = ["42883", "42704", "3F000"];
/** The server is starting, stopping or recovering, or has no connection left. */
const NOT_UP_STATES = ["57P01", "57P02", "57P03", "53300"];
/** Nothing listens at the address yet, or the host cannot be reached or resolved yet. */
const NOT_UP_CODES = [
  "ECONNREFUSED",
  "ECONNRESET",
  "EPIPE",
  "EHOSTUNREACH",
  "EHOSTDOWN",
  "ENETUNREACH",
  "ETIMEDOUT",
  "EAI_AGAIN",
  "ENOTFOUND",
];
/** Messages of the `pg` library, without a code, when a connection times out or is cut while it is opened. */
const NOT_UP_TEXTS = /timeout expired|connection timeout|Connection terminated/;
/** Our functions raise this when a batch has an idempotency key that was used for another request. */
export const BATCH_CONFLICT = "P0409";
/** And this when a call would exceed a bound of its caller. */
export const BOUND_EXCEEDED = "P0429";

export function isTransient(error: unknown): boolean {
  return error instanceof DatabaseError && TRY_AGAIN.includes(error.code ?? "");
}

export function isUniqueViolation(error: unknown): boolean {
  const cause = error instanceof RotaError ? error.cause : error;
  return cause instanceof DatabaseError && cause.code === UNIQUE_VIOLATION;
}

export function isUnknownName(error: unknown): boolean {
  return error instanceof DatabaseError && UNKNOWN_NAMES.includes(error.code ?? "");
}

/** The functions of this version are gone: a migration of a later version dropped them. Other nodes can serve the caller. */
export function replacedError(cause?: unknown): RotaError {
  return new RotaError(
    "storage_unavailable",
    "a later version of Rota has migrated the database: update this node",
    { cause },
  );
}

/** Which task of a batch was refused, and the task that its key had created before; null for any other error. */
export function batchConflictOf(error: unknown): { taskId: string; refused: string } | null {
  if (!(error instanceof DatabaseError) || error.code !== BATCH_CONFLICT) return null;
  return JSON.parse(error.detail ?? "{}");
}

/** The error for the caller, if the bound of a caller would be exceeded; else the error itself. */
export function orBoundExceeded(error: unknown): unknown {
  if (!(error instanceof DatabaseError) || error.code !== BOUND_EXCEEDED) return error;
  const { now, limit, oldest, ...exceeded } = JSON.parse(error.detail ?? "{}");
  return limit === undefined ? boundExceeded(exceeded, now) : tooManyOfMaker(limit, oldest);
}

/** Whether a database could not be opened because it is not up yet, so that a retry may succeed soon. */
export function isNotUpYet(error: unknown): boolean {
  const cause = error instanceof RotaError ? error.cause : error;
  if (cause instanceof DatabaseError) return NOT_UP_STATES.includes(cause.code ?? "");
  if (cause instanceof AggregateError) return cause.errors.every(isNotUpYet);
  if (!(cause instanceof Error)) return false;
  const { code, syscall } = cause as NodeJS.ErrnoException;
  if (code === undefined) return NOT_UP_TEXTS.test(cause.message);
  // A Unix socket that does not exist yet. Other missing files stay missing.
  return NOT_UP_CODES.includes(code) || (code === "ENOENT" && syscall === "connect");
}

/** The message of an error, without our own prefix. */
export function reachedText(error: unknown): string {
  const cause = error instanceof RotaError ? error.cause : error;
  return cause instanceof Error ? describe(cause) : String(cause);
}

/** As `toRotaError`, for a database that cannot be opened: adds advice where there is some. */
export function toOpenError(error: unknown): unknown {
  const code = error instanceof DatabaseError ? (error.code ?? "") : "";
  const advice = OPEN_ADVICE[code] ?? (isUnreachable(error) ? UNREACHABLE_ADVICE : undefined);
  if (!(error instanceof Error) || advice === undefined) return toRotaError(error);
  return new RotaError("storage_unavailable", `PostgreSQL: ${describe(error)}: ${advice}`, { cause: error });
}

/** Whether the address did not respond: it is wrong, or no server listens there. */
function isUnreachable(error: unknown): boolean {
  return isNotUpYet(error) && !(error instanceof DatabaseError);
}

const UNREACHABLE_ADVICE = "check that it runs, and the host and port in `storage`";

const PASSWORD_ADVICE = "check the user and the password in `storage`";
const OPEN_ADVICE: Readonly<Record<string, string>> = {
  "28P01": PASSWORD_ADVICE,
  "28000": PASSWORD_ADVICE,
  "3D000": "create it, or name another one in `storage`",
  "42501": "the user needs the right to create schemas in the database",
};

/**
 * An unreachable database becomes `storage_unavailable`, which callers can wait for. A fault of a statement is a bug and stays.
 */
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
