import type { Agent, BodyInit, RequestInit, Response } from "undici";
import { retryAfterMs } from "../model/retry-after.ts";
import { brokenAnswer, noAnswer } from "./call-error.ts";
import { TargetRefused } from "./guarded-agent.ts";
import type { TargetGuard } from "./target-guard.ts";

/** How long the other side may take to accept a connection; an attempt's own timeout bounds everything after. */
const CONNECT_TIMEOUT_MS = 10_000;
/** How long a connection is kept for the next call. */
const KEEP_ALIVE_MS = 30_000;

export interface LimitedRequest {
  readonly method: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: BodyInit;
  readonly signal: AbortSignal;
  /** How much of the answer is read, unpacked if it comes packed; the rest is left and the connection dropped. */
  readonly bodyBytesMax: number;
  /** The moment a `Retry-After` date is counted from, in milliseconds since 1970. */
  readonly now: number;
  /** Where the URL is one that a user gave: throws `TargetRefused` instead of connecting to what it forbids. */
  readonly guard?: TargetGuard;
}

export interface LimitedResponse {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
  /** Whether there was more than `bodyBytesMax`. */
  readonly truncated: boolean;
  readonly retryAfterMs: number | undefined;
}

/**
 * One HTTP call with a bounded answer. Redirects are answers like any other: they are not followed. Throws a `CallError`
 * when there is no answer, or only the beginning of one, and the signal's reason when that fires.
 */
export async function fetchWithLimits(url: string, request: LimitedRequest): Promise<LimitedResponse> {
  const { method, headers, body, signal, bodyBytesMax, now, guard } = request;
  const response = await call(url, {
    ...(guard === undefined ? {} : { dispatcher: await guard.dispatcher() }),
    method,
    ...(headers === undefined ? {} : { headers }),
    ...(body === undefined ? {} : { body }),
    signal,
    redirect: "manual",
  });
  const { text, truncated } = await readBody(response, bodyBytesMax).catch((error) => {
    throw brokenAnswer(url, error);
  });
  return {
    status: response.status,
    contentType: response.headers.get("content-type") ?? "",
    body: text,
    truncated,
    retryAfterMs: retryAfterMs(response.headers.get("retry-after"), now),
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

async function readBody(response: Response, bytesMax: number): Promise<{ text: string; truncated: boolean }> {
  if (response.body === null) return { text: "", truncated: false };
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
    chunks.push(chunk);
    bytes += chunk.byteLength;
    // Leaving the loop cancels the stream.
    if (bytes > bytesMax) break;
  }
  const kept = Buffer.concat(chunks).subarray(0, bytesMax);
  const truncated = bytes > bytesMax;
  // As a stream that goes on, a character that the cut went through is left out.
  return { text: new TextDecoder().decode(kept, { stream: truncated }), truncated };
}
