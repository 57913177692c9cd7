import { fetchWithLimits, type LimitedResponse } from "../outbound/fetch-with-limits.ts";
import { HttpError } from "./errors.ts";
import type { Executor } from "./executor.ts";

/** How much of an answer is read, and how much the result may take as JSON. */
const ANSWER_BYTES_MAX = 1_048_576;
/** How much of a failure's body its error repeats. */
const ERROR_BODY_BYTES_MAX = 1_024;

export interface HttpExecutorOptions {
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

/** Posts the task as JSON to a URL; the JSON or text answer is the result. */
export function httpExecutor({ url, headers, now }: HttpExecutorOptions): Executor {
  return async (task, { signal }) => {
    const response = await fetchWithLimits(url, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify(task),
      signal,
      bodyBytesMax: ANSWER_BYTES_MAX,
      now: now(),
    });
    if (response.status < 200 || response.status > 299) throw failure(response);
    return result(response);
  };
}

function failure({ status, body, retryAfterMs }: LimitedResponse): HttpError {
  return new HttpError(status, `HTTP ${status}: ${cut(body)}`, { retryAfterMs });
}

function cut(body: string): string {
  const bytes = Buffer.from(body);
  if (bytes.byteLength <= ERROR_BODY_BYTES_MAX) return body;
  return `${bytes
    .subarray(0, ERROR_BODY_BYTES_MAX)
    .toString()
    .replace(/\u{fffd}+$/u, "")}…`;
}

function result({ body, contentType, truncated }: LimitedResponse): unknown {
  const answer = truncated ? undefined : parse(body, contentType);
  return answer !== undefined && fits(answer) ? answer : { truncated: true, text: cutToFit(body) };
}

function parse(body: string, contentType: string): unknown {
  if (!/^application\/(?:[\w.+-]+\+)?json\b/i.test(contentType)) return body;
  try {
    return JSON.parse(body);
  } catch {
    return body;
  }
}

function fits(answer: unknown): boolean {
  return Buffer.byteLength(JSON.stringify(answer)) <= ANSWER_BYTES_MAX;
}

/** Quotes and line breaks take more room in JSON than in the text, so that a cut at the limit may still be too long. */
function cutToFit(body: string): string {
  let text = body;
  while (!fits({ truncated: true, text })) text = text.slice(0, Math.floor(text.length * 0.9)).toWellFormed();
  return text;
}
