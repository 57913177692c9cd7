import type { Agent, RequestInit, Response } from "undici";
import { retryAfterMs } from "../model/text/retry-after.ts";
import type { TextBody } from "../model/text/text-body.ts";
import { brokenAnswer, noAnswer } from "./call-error.ts";
import { TargetRefused } from "./guarded-agent.ts";
import type { TargetGuard } from "./target-guard.ts";
import { byteLengthOf, piecesOf } from "./text-body.ts";

/** How long a host may take to accept a connection. The attempt's own timeout bounds the rest. */
const CONNECT_TIMEOUT_MS = 10_000;
/** How long a connection is kept for the next call. */
const KEEP_ALIVE_MS = 30_000;

export interface OutboundRequest {
  readonly method: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: TextBody;
  readonly signal: AbortSignal;
  /** The current time, to convert a `Retry-After` date to a delay, in milliseconds since 1970. */
  readonly now: number;
  /** For a URL that a user submitted: the call throws `TargetRefused` instead of connecting to a forbidden target. */
  readonly guard?: TargetGuard;
}

/** A response of which only the status and the headers have arrived. */
export interface Answer {
  readonly status: number;
  readonly contentType: string;
  readonly retryAfterMs: number | undefined;
  /** `X-Rota-Usage`: the usage that the agent reports for this response; null: none. */
  readonly usageHeader: string | null;
  /**
   * The body as it arrives, decompressed. If it is read to its end, the connection is reused for the next call; otherwise it is
   * dropped. Throws a `CallError` when the body breaks off, and the signal's reason when the signal fires.
   */
  readonly body: AsyncIterable<Uint8Array>;
}

/**
 * Makes one HTTP call. Resolves as soon as the headers of the response arrive. Redirects are returned, not followed. Throws a
 * `CallError` when there is no response, and the signal's reason when the signal fires.
 */
export async function fetchAnswer(url: string, request: OutboundRequest): Promise<Answer> {
  const { method, headers, body, signal, now, guard } = request;
  const response = await call(url, {
    ...(guard === undefined ? {} : { dispatcher: await guard.dispatcher() }),
    method,
    ...contentOf(headers, body),
    signal,
    redirect: "manual",
  });
  return {
    status: response.status,
    contentType: response.headers.get("content-type") ?? "",
    retryAfterMs: retryAfterMs(response.headers.get("retry-after"), now),
    usageHeader: response.headers.get("x-rota-usage"),
    body: bodyOf(url, response),
  };
}

function contentOf(
  headers: OutboundRequest["headers"],
  body: TextBody | undefined,
): Pick<RequestInit, "headers" | "body" | "duplex"> {
  if (body === undefined || typeof body === "string") {
    return { ...(headers && { headers }), ...(body !== undefined && { body }) };
  }
  // Receivers need not understand a body without a length.
  const length = { "content-length": String(byteLengthOf(body)) };
  return { headers: { ...headers, ...length }, body: piecesOf(body), duplex: "half" };
}

async function call(url: string, init: RequestInit): Promise<Response> {
  outbound ??= loadOutbound();
  const { fetch, agent } = await outbound;
  try {
    return await fetch(url, { dispatcher: agent, ...init });
  } catch (error) {
    const cause = error instanceof TypeError ? error.cause : undefined;
    throw cause instanceof TargetRefused ? cause : noAnswer(url, error);
  }
}

let outbound: ReturnType<typeof loadOutbound> | undefined;

/** Loads undici at the first call: loading takes a tenth of a second, and most programs that embed Rota never need it. */
async function loadOutbound(): Promise<{ fetch: typeof import("undici").fetch; agent: Agent }> {
  const undici = await import("undici");
  // A call may take as long as an attempt: the caller's signal ends it, not a timeout of undici.
  const agent = new undici.Agent({
    headersTimeout: 0,
    bodyTimeout: 0,
    keepAliveTimeout: KEEP_ALIVE_MS,
    connect: { timeout: CONNECT_TIMEOUT_MS },
  });
  return { fetch: undici.fetch, agent };
}

async function* bodyOf(url: string, { body }: Response): AsyncGenerator<Uint8Array> {
  if (body === null) return;
  try {
    yield* body as AsyncIterable<Uint8Array>;
  } catch (error) {
    throw brokenAnswer(url, error);
  }
}
