/**
 * Thrown when there is no response of Rota: nothing listens at the address, the connection broke, the response took too long, or
 * something in between (a proxy, another program) responded instead.
 *
 * @example
 * catch (error) { if (error instanceof ConnectionError && !error.mayHaveHappened) await later(); }
 */
export class ConnectionError extends Error {
  /** The address of the server. */
  readonly url: string;
  /** The status of the response that was not Rota's. Undefined: there was none. */
  readonly status: number | undefined;
  /**
   * Whether the server may have carried out the request. If so, a submit may have stored its task, so the client does not retry
   * it by itself.
   */
  readonly mayHaveHappened: boolean;

  constructor(
    message: string,
    options: {
      readonly url: string;
      readonly mayHaveHappened: boolean;
      readonly status?: number;
      readonly cause?: unknown;
    },
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "ConnectionError";
    this.url = options.url;
    this.status = options.status;
    this.mayHaveHappened = options.mayHaveHappened;
  }
}

/** Node's codes for errors before the first byte was sent. Browsers do not report that, so there it counts as unknown. */
const NEVER_SENT: ReadonlySet<unknown> = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "UND_ERR_CONNECT_TIMEOUT",
]);

/** Node's codes for a server that responds to a TLS handshake with something else: it speaks plain HTTP. */
const NO_TLS: ReadonlySet<unknown> = new Set(["ERR_SSL_WRONG_VERSION_NUMBER", "EPROTO"]);

/** The error for a failed `fetch`, or a failed read of its response. */
export function connectionFailed(url: string, cause: unknown): ConnectionError {
  const { code, message } = reasonOf(cause);
  return new ConnectionError(`cannot reach Rota at ${url}: ${message}`, {
    url,
    cause,
    mayHaveHappened: !NEVER_SENT.has(code),
  });
}

export function answerTookTooLong(url: string, timeoutMs: number): ConnectionError {
  return new ConnectionError(`Rota at ${url} did not respond within ${timeoutMs} ms`, {
    url,
    mayHaveHappened: true,
  });
}

const SHOWN_MAX = 100;

/** The error for a response that Rota does not send. */
export function notRotasAnswer(url: string, status: number, text: string): ConnectionError {
  const words = text.replaceAll(/\s+/g, " ").trim();
  const shown = words === "" ? "nothing" : JSON.stringify(words.slice(0, SHOWN_MAX));
  return new ConnectionError(`${url} does not respond as Rota does: status ${status}, ${shown}`, {
    url,
    status,
    mayHaveHappened: true,
  });
}

/** Node wraps the cause into a "fetch failed". */
function reasonOf(error: unknown): { code: unknown; message: string } {
  const inner = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  if (!(inner instanceof Error)) return { code: undefined, message: String(inner) };
  const code = "code" in inner ? inner.code : undefined;
  if (NO_TLS.has(code))
    return { code, message: "no TLS is spoken there; write http:// in place of https://" };
  return { code, message: inner.message || String(code ?? inner.name) };
}
