/** A failed HTTP call: the host could not be reached, did not respond, or the response broke off. */
export class CallError extends Error {
  /** No host can have got the request: it can be sent elsewhere without being executed twice. */
  readonly neverSent: boolean;

  constructor(message: string, options: ErrorOptions & { neverSent: boolean }) {
    super(message, options);
    this.name = "CallError";
    this.neverSent = options.neverSent;
  }
}

/** The error for a failure before the response. It names the origin, but not the path of the URL. */
export function noAnswer(url: string, thrown: unknown): unknown {
  const cause = hiddenCause(thrown);
  if (cause === undefined) return thrown;
  const neverSent = isFailureToConnect(cause);
  const what = neverSent ? "cannot reach" : "no answer from";
  return new CallError(`${what} ${new URL(url).origin}: ${reasonOf(cause)}`, { cause: thrown, neverSent });
}

/** The error for a failure in the middle of the response. */
export function brokenAnswer(url: string, thrown: unknown): unknown {
  const cause = hiddenCause(thrown);
  if (cause === undefined) return thrown;
  const message = `the answer of ${new URL(url).origin} broke off: ${reasonOf(cause)}`;
  return new CallError(message, { cause: thrown, neverSent: false });
}

/** undici says only "fetch failed" or "terminated"; the reason is in the cause. The reason of an abort signal has no cause. */
function hiddenCause(thrown: unknown): Error | undefined {
  return thrown instanceof TypeError && thrown.cause instanceof Error ? thrown.cause : undefined;
}

/** Decides by the system call that failed: an open connection can break with some of the same error codes. */
function isFailureToConnect(cause: Error): boolean {
  const { syscall } = cause as NodeJS.ErrnoException;
  // An AggregateError means that connecting failed for several addresses.
  return (
    isRefusedPort(cause) ||
    syscall === "connect" ||
    syscall === "getaddrinfo" ||
    cause instanceof AggregateError ||
    codeOf(cause) === "UND_ERR_CONNECT_TIMEOUT"
  );
}

/** `fetch` refuses ports that browsers reserve for other protocols, such as 6000 or 6667, with only this message. */
function isRefusedPort({ message }: Error): boolean {
  return message === "bad port";
}

/** What undici says of this does not name who closed what. */
function isClosedByOther({ message }: Error): boolean {
  return message === "other side closed";
}

function reasonOf(cause: Error): string {
  if (isRefusedPort(cause))
    return "the port is one that HTTP clients refuse to call, let it listen on another";
  if (isClosedByOther(cause)) return "it closed the connection";
  const code = codeOf(cause);
  // An AggregateError has no message of its own.
  return cause.message || (typeof code === "string" ? code : cause.name);
}

function codeOf(cause: Error): unknown {
  return (cause as { code?: unknown }).code;
}
