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
  return cutShort(body);
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
  return bytesOf(answer) <= ANSWER_BYTES_MAX;
}

function bytesOf(answer: unknown): number {
  return Buffer.byteLength(JSON.stringify(answer));
}

/** Quotes and line breaks take more room in JSON than in the text, so that it is cut until it fits. */
function cutShort(body: string): { truncated: true; text: string } {
  let answer = { truncated: true as const, text: body };
  for (let bytes = bytesOf(answer); bytes > ANSWER_BYTES_MAX; bytes = bytesOf(answer)) {
    const length = Math.floor((answer.text.length * ANSWER_BYTES_MAX) / bytes) - 1;
    answer = { truncated: true, text: answer.text.slice(0, length).toWellFormed() };
  }
  return answer;
}
