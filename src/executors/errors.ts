/** Statuses that a retry would only repeat. */
const PERMANENT_STATUSES: ReadonlySet<number> = new Set([400, 401, 403, 404, 405, 410, 413, 422]);

/**
 * Thrown by an executor if a retry would fail again. The task fails at once, even if it has retries left.
 *
 * @example
 * throw new PermanentError(`no such page: ${task.payload.url}`);
 */
export class PermanentError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "PermanentError";
  }
}

/** Thrown if the executor is gone when the task starts. Another node may have it. */
export class NoExecutorError extends Error {
  constructor(agent: string) {
    super(noExecutorHere(agent));
    this.name = "NoExecutorError";
  }
}

export function noExecutorHere(agent: string): string {
  return `this node has no executor for agent "${agent}" any more`;
}

/** An HTTP call got an error response: `HTTP {status}: {body}`. */
export class HttpError extends Error {
  readonly status: number;
  /** The wait that the response asked for with `Retry-After`. */
  readonly retryAfterMs: number | undefined;

  constructor(status: number, message: string, options: { retryAfterMs?: number | undefined } = {}) {
    super(message);
    this.name = "HttpError";
    this.status = status;
    this.retryAfterMs = options.retryAfterMs;
  }

  get permanent(): boolean {
    return PERMANENT_STATUSES.has(this.status);
  }
}
