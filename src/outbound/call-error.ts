/** An HTTP call that came to nothing: nobody was reached, nobody answered, or the answer broke off. */
export class CallError extends Error {
  /** Nobody can have got the request: sending it elsewhere does nothing twice. */
  readonly neverSent: boolean;

  constructor(message: string, options: ErrorOptions & { neverSent: boolean }) {
    super(message, options);
    this.name = "CallError";
    this.neverSent = options.neverSent;
  }
}

/** What a failure before the answer means. Says whom it could not reach, but not what it wanted there. */
export function noAnswer(url: string, thrown: unknown): unknown {
  const cause = hiddenCause(thrown);
  if (cause === undefined) return thrown;
  const neverSent = isFailureToConnect(cause);
  const what = neverSent ? "cannot reach" : "no answer from";
  return new CallError(`${what} ${new URL(url).origin}: ${reasonOf(cause)}`, { cause: thrown, neverSent });
}

/** What a failure in the middle of the answer means. */
export function brokenAnswer(url: string, thrown: unknown): unknown {
  const cause = hiddenCause(thrown);
  if (cause === undefined) return thrown;
  const message = `the answer of ${new URL(url).origin} broke off: ${reasonOf(cause)}`;
  return new CallError(message, { cause: thrown, neverSent: false });
}

/** undici says only "fetch failed" or "terminated" and hides why in the cause. What a signal throws has none. */
function hiddenCause(thrown: unknown): Error | undefined {
  return thrown instanceof TypeError && thrown.cause instanceof Error ? thrown.cause : undefined;
}

/** By the step that failed: a connection that was made can break with some of the same codes. */
function isFailureToConnect(cause: Error): boolean {
  const { syscall } = cause as NodeJS.ErrnoException;
  // Several addresses that were tried in vain make an AggregateError.
  return (
    isRefusedPort(cause) ||
    syscall === "connect" ||
    syscall === "getaddrinfo" ||
    cause instanceof AggregateError ||
    codeOf(cause) === "UND_ERR_CONNECT_TIMEOUT"
  );
}

/** `fetch` calls no port that browsers keep for other protocols, such as 6000 or 6667, and says only this. */
function isRefusedPort({ message }: Error): boolean {
  return message === "bad port";
}

function reasonOf(cause: Error): string {
  if (isRefusedPort(cause))
    return "the port is one that HTTP clients refuse to call, let it listen on another";
  const code = codeOf(cause);
  // An AggregateError has no message of its own.
  return cause.message || (typeof code === "string" ? code : cause.name);
}

function codeOf(cause: Error): unknown {
  return (cause as { code?: unknown }).code;
}
