/** Answers of the other side that trying again would only repeat. */
const PERMANENT_STATUSES: ReadonlySet<number> = new Set([400, 401, 403, 404, 405, 410, 413, 422]);

/**
 * Thrown by an executor when trying again would only fail again: the task fails at once, whatever retries are left.
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

/** Thrown in place of an executor that is gone by the time the task starts: another node may have it. */
export class NoExecutorError extends Error {
  constructor(agent: string) {
    super(noExecutorHere(agent));
    this.name = "NoExecutorError";
  }
}

export function noExecutorHere(agent: string): string {
  return `this node has no executor for agent "${agent}" any more`;
}

/** The other side of an HTTP call answered with a failure: `HTTP {status}: {body}`. */
export class HttpError extends Error {
  readonly status: number;
  /** The wait it asked for with `Retry-After`. */
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
