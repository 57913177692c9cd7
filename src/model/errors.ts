/** Every error code with its HTTP status. docs/errors.md explains each. */
export const ERROR_STATUS = {
  invalid_json: 400,
  invalid_field: 400,
  unauthorized: 401,
  forbidden: 403,
  not_found: 404,
  unknown_worker: 404,
  method_not_allowed: 405,
  conflict: 409,
  idempotency_conflict: 409,
  unknown_key: 400,
  dependency_cycle: 400,
  batch_too_large: 400,
  body_too_large: 413,
  queue_full: 429,
  rate_limited: 429,
  too_many_polls: 429,
  quota_exceeded: 429,
  interval_too_short: 400,
  too_deep: 403,
  internal_error: 500,
  draining: 503,
  scheduler_disabled: 503,
  storage_unavailable: 503,
} as const;

export type ErrorCode = keyof typeof ERROR_STATUS;

/** Errors after which a retry may succeed. */
const RETRYABLE: ReadonlySet<ErrorCode> = new Set([
  "queue_full",
  "rate_limited",
  "too_many_polls",
  "draining",
  "storage_unavailable",
]);

/**
 * The error that Rota throws to callers. `message` says what is wrong, where, and what to do instead.
 *
 * @example
 * catch (error) { if (error instanceof RotaError && error.code === "queue_full") await later(); }
 */
export class RotaError extends Error {
  readonly code: ErrorCode;
  readonly details: Readonly<Record<string, unknown>> | undefined;
  /** After how many seconds to retry; undefined: not known beyond what the code says. */
  readonly retryAfterSec: number | undefined;

  constructor(
    code: ErrorCode,
    message: string,
    options: { details?: Record<string, unknown>; cause?: unknown; retryAfterSec?: number } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "RotaError";
    this.code = code;
    this.details = options.details;
    this.retryAfterSec = options.retryAfterSec;
  }

  get status(): number {
    return ERROR_STATUS[this.code];
  }

  get retryable(): boolean {
    return RETRYABLE.has(this.code);
  }

  /** The body of an HTTP response: `{code, error, retryable?, details?}`. */
  toJSON(): {
    code: ErrorCode;
    error: string;
    retryable?: true;
    details?: Readonly<Record<string, unknown>>;
  } {
    return {
      code: this.code,
      error: this.message,
      ...(this.retryable ? { retryable: true as const } : {}),
      ...(this.details === undefined ? {} : { details: this.details }),
    };
  }
}
