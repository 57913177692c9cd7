import type { Answer } from "../outbound/fetch-answer.ts";
import type { LimitedResponse } from "../outbound/read-answer.ts";
import { excerpt, resultOfText } from "./answer-text.ts";
import { HttpError } from "./errors.ts";

export interface HttpAnswerOptions {
  /** Which responses are parsed as JSON: those that declare it or declare nothing, or all. What is not JSON stays text. */
  readonly json: "as-declared" | "always";
}

/** The response as the result of a task. Throws if it is a failure. */
export function resultOf(response: LimitedResponse, { json }: HttpAnswerOptions): unknown {
  if (!isSuccess(response)) throw failureOf(response);
  const { body: text, truncated } = response;
  return resultOfText({ text, truncated }, { json: json === "always" || saysJson(response) });
}

export function isSuccess({ status }: Pick<Answer, "status">): boolean {
  return status >= 200 && status <= 299;
}

/** `HTTP {status}: {body}`, or with other words before the status. */
export function failureOf({ status, body, retryAfterMs }: LimitedResponse, said = "HTTP"): HttpError {
  return new HttpError(status, `${said} ${status}: ${excerpt(body)}`, { retryAfterMs });
}

function saysJson({ contentType }: LimitedResponse): boolean {
  return contentType === "" || /^application\/(?:[\w.+-]+\+)?json\b/i.test(contentType);
}
