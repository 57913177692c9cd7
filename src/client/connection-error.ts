/**
 * What the client throws when there is no answer of Rota's to pass on: nobody listens there, the connection broke, the
 * answer took too long, or something on the way (a proxy, another program) answered in Rota's place.
 *
 * @example
 * catch (error) { if (error instanceof ConnectionError && !error.mayHaveHappened) await later(); }
 */
export class ConnectionError extends Error {
  /** Where Rota was looked for. */
  readonly url: string;
  /** Of the answer that was not Rota's; undefined when there was none. */
  readonly status: number | undefined;
  /**
   * Whether the request may have been carried out all the same. A submit for which this is true may have stored its
   * task, so the client does not send it again by itself.
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

/** What Node says when not a single byte was sent. Browsers do not tell, so that there it counts as unknown. */
const NEVER_SENT: ReadonlySet<unknown> = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "UND_ERR_CONNECT_TIMEOUT",
]);

/** The error for a `fetch`, or the reading of its answer, that failed. */
export function connectionFailed(url: string, cause: unknown): ConnectionError {
  const { code, message } = reasonOf(cause);
  return new ConnectionError(`cannot reach Rota at ${url}: ${message}`, {
    url,
    cause,
    mayHaveHappened: !NEVER_SENT.has(code),
  });
}

export function answerTookTooLong(url: string, timeoutMs: number): ConnectionError {
  return new ConnectionError(`Rota at ${url} did not answer within ${timeoutMs} ms`, {
    url,
    mayHaveHappened: true,
  });
}

const SHOWN_MAX = 100;

/** The error for an answer that Rota would not give. */
export function notRotasAnswer(url: string, status: number, text: string): ConnectionError {
  const words = text.replaceAll(/\s+/g, " ").trim();
  const shown = words === "" ? "nothing" : JSON.stringify(words.slice(0, SHOWN_MAX));
  return new ConnectionError(`${url} does not answer as Rota does: status ${status}, ${shown}`, {
    url,
    status,
    mayHaveHappened: true,
  });
}

/** Node wraps what happened into a "fetch failed". */
function reasonOf(error: unknown): { code: unknown; message: string } {
  const inner = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  if (!(inner instanceof Error)) return { code: undefined, message: String(inner) };
  const code = "code" in inner ? inner.code : undefined;
  return { code, message: inner.message || String(code ?? inner.name) };
}
