import { isDeeperThan } from "../model/json-depth.ts";
import { JSON_DEPTH_MAX } from "../model/task-input.ts";
import type { LimitedResponse } from "../outbound/fetch-with-limits.ts";
import { HttpError } from "./errors.ts";

/** How much of an answer is read, and how much the result may take as JSON. */
export const ANSWER_BYTES_MAX = 1_048_576;
/** How much of a failure's body its error repeats. */
const ERROR_BODY_BYTES_MAX = 1_024;

export interface HttpAnswerOptions {
  /** Which answers are read as JSON: those that say they are, or say nothing; or all. Else, or if it is none: text. */
  readonly json: "as-declared" | "always";
}

/** What the other side answered, as the result of a task. Throws what it means if it is a failure. */
export function resultOf(response: LimitedResponse, { json }: HttpAnswerOptions): unknown {
  if (!isSuccess(response)) throw failureOf(response);
  const { body, truncated } = response;
  if (!truncated) {
    const answer = json === "always" || saysJson(response) ? parse(body) : body;
    if (fits(answer)) return answer;
  }
  return { truncated: true, text: cutToFit(body) };
}

export function isSuccess({ status }: LimitedResponse): boolean {
  return status >= 200 && status <= 299;
}

/** `HTTP {status}: {body}`, after `prefix`. */
export function failureOf({ status, body, retryAfterMs }: LimitedResponse, prefix = ""): HttpError {
  return new HttpError(status, `${prefix}HTTP ${status}: ${cut(body)}`, { retryAfterMs });
}

function cut(body: string): string {
  const bytes = Buffer.from(body);
  if (bytes.byteLength <= ERROR_BODY_BYTES_MAX) return body;
  return `${bytes
    .subarray(0, ERROR_BODY_BYTES_MAX)
    .toString()
    .replace(/\u{fffd}+$/u, "")}…`;
}

function saysJson({ contentType }: LimitedResponse): boolean {
  return contentType === "" || /^application\/(?:[\w.+-]+\+)?json\b/i.test(contentType);
}

function parse(body: string): unknown {
  // Deeper than a result may be, it is kept as the text it came as.
  if (isDeeperThan(JSON_DEPTH_MAX, body)) return body;
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
