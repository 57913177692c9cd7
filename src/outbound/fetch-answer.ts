import type { Agent, BodyInit, RequestInit, Response } from "undici";
import { retryAfterMs } from "../model/text/retry-after.ts";
import { brokenAnswer, noAnswer } from "./call-error.ts";
import { TargetRefused } from "./guarded-agent.ts";
import type { TargetGuard } from "./target-guard.ts";

/** How long the other side may take to accept a connection; an attempt's own timeout bounds everything after. */
const CONNECT_TIMEOUT_MS = 10_000;
/** How long a connection is kept for the next call. */
const KEEP_ALIVE_MS = 30_000;

export interface OutboundRequest {
  readonly method: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: BodyInit;
  readonly signal: AbortSignal;
  /** The moment a `Retry-After` date is counted from, in milliseconds since 1970. */
  readonly now: number;
  /** Where the URL is one that a user gave: throws `TargetRefused` instead of connecting to what it forbids. */
  readonly guard?: TargetGuard;
}

/** An answer of which only the head has arrived. */
export interface Answer {
  readonly status: number;
  readonly contentType: string;
  readonly retryAfterMs: number | undefined;
  /** `X-Rota-Usage`: what the answer cost, as the other side says; null when it does not. */
  readonly usageHeader: string | null;
  /**
   * The body, unpacked if it comes packed, as it arrives. Read to its end, the connection serves the next call; left
   * before, it is dropped. Throws a `CallError` when it breaks off, and the signal's reason when that fires.
   */
  readonly body: AsyncIterable<Uint8Array>;
}

/**
 * One HTTP call, answered as soon as the other side begins to. Redirects are answers like any other: they are not
 * followed. Throws a `CallError` when there is no answer, and the signal's reason when that fires.
 */
export async function fetchAnswer(url: string, request: OutboundRequest): Promise<Answer> {
  const { method, headers, body, signal, now, guard } = request;
  const response = await call(url, {
    ...(guard === undefined ? {} : { dispatcher: await guard.dispatcher() }),
    method,
    ...(headers === undefined ? {} : { headers }),
    ...(body === undefined ? {} : { body }),
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

/** Loaded with the first call: it takes a tenth of a second, and most programs that embed Rota never call out. */
async function loadOutbound(): Promise<{ fetch: typeof import("undici").fetch; agent: Agent }> {
  const undici = await import("undici");
  // Calls may rightly take as long as an attempt may: the caller's signal ends them, not a timeout hidden in here.
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
