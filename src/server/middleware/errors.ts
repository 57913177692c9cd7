import type { IncomingMessage } from "node:http";
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { type ErrorCode, RotaError } from "../../model/errors.ts";
import type { Log } from "../../model/log.ts";

/** The largest body. */
export const BODY_BYTES_MAX = 1_048_576;

/** When a retry makes sense, in seconds. A full queue has room as soon as one task starts. */
export const RETRY_AFTER_SEC = {
  queue_full: 1,
  rate_limited: 1,
  draining: 5,
  storage_unavailable: 5,
} as const satisfies Partial<Record<ErrorCode, number>>;

export interface AnswerErrorsOptions {
  readonly log: Log;
  /** Called for every request that gets an error. */
  readonly onRefused: (request: FastifyRequest, error: RotaError) => void;
}

/** Responds to every error, also those of the HTTP library, as `{code, error, retryable?, details?}`. */
export function answerErrors(app: FastifyInstance, { log, onRefused }: AnswerErrorsOptions): void {
  app.setErrorHandler<FastifyError>((given, request, reply) => {
    const error = toRotaError(given);
    if (error.code === "internal_error") {
      log.error(
        { error: given, method: request.method, url: withoutTokens(request.url) },
        "a request failed unexpectedly",
      );
    }
    onRefused(request, error);
    return sendError(reply, error);
  });
}

export function sendError(reply: FastifyReply, error: RotaError): FastifyReply {
  const retryAfterSec =
    error.retryAfterSec ?? (RETRY_AFTER_SEC as Partial<Record<ErrorCode, number>>)[error.code];
  if (retryAfterSec !== undefined) reply.header("retry-after", retryAfterSec);
  if (error.code === "unauthorized") reply.header("www-authenticate", "Bearer");
  // The rest of the body is not read, so no further request can use the connection.
  if (isUnfinished(reply.request.raw)) reply.header("connection", "close");
  return reply.code(error.status).send(error.toJSON());
}

/** Whether a part of the body has not arrived yet. */
function isUnfinished({ complete, headers }: IncomingMessage): boolean {
  return (
    !complete && (headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0)
  );
}

/** Finds the fault in `message`, which contains the path. */
function pathFault(message: string): string {
  return /%(?![\da-f]{2})/i.test(message)
    ? "a `%` must be followed by two hexadecimal digits"
    : "what is written as `%` and two digits is not valid UTF-8, which it must be, like `%C3%A9` for é";
}

export function toRotaError(error: FastifyError): RotaError {
  if (error instanceof RotaError) return error;
  switch (error.code) {
    case "FST_ERR_CTP_BODY_TOO_LARGE":
      return new RotaError(
        "body_too_large",
        `the body is larger than ${BODY_BYTES_MAX} bytes: store large data elsewhere, and send a reference to it`,
      );
    case "FST_ERR_CTP_INVALID_MEDIA_TYPE":
      return new RotaError(
        "invalid_json",
        "send the body as JSON, with the header `content-type: application/json`",
      );
    case "FST_ERR_BAD_URL":
      return new RotaError("invalid_field", `the path is not a URL: ${pathFault(error.message)}`);
  }
  if (error.statusCode !== undefined && error.statusCode >= 400 && error.statusCode < 500) {
    return new RotaError("invalid_json", `the request cannot be read: ${error.message}`, { cause: error });
  }
  return new RotaError("internal_error", "internal error of Rota; its log has the details", {
    cause: error,
  });
}

/** The token of an attempt is a secret of its worker. */
function withoutTokens(url: string): string {
  return url.replace(/\batt_[\w-]+/g, "…");
}
