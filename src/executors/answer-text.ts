import { JSON_DEPTH_MAX } from "../model/input/task-input.ts";
import { isDeeperThan } from "../model/text/json-depth.ts";

/** How much of a response is read, and how large the result may be as JSON. */
export const ANSWER_BYTES_MAX = 1_048_576;
/** How much of a failure's text is repeated in the error. */
export const EXCERPT_BYTES_MAX = 1_024;

/** The text of a response, or its beginning. */
export interface AnswerText {
  readonly text: string;
  readonly truncated: boolean;
}

/** A response as the result of a task: its parsed JSON if `json`, else the text. */
export function resultOfText({ text, truncated }: AnswerText, { json }: { json: boolean }): unknown {
  if (!truncated) {
    const said = json ? readJson(text) : null;
    const answer = said === null ? text : said.value;
    if (bytesOf(answer) <= ANSWER_BYTES_MAX) return answer;
  }
  return cutToFit({ truncated: true, text });
}

/** A part of a response is too long for a result. */
export function tooLong(): Error {
  return new Error(`a part of the answer is longer than ${ANSWER_BYTES_MAX} characters`);
}

/** Parses JSON; null if it is none. JSON nested deeper than a result may be counts as none, and stays text. */
export function readJson(text: string): { readonly value: unknown } | null {
  if (isDeeperThan(JSON_DEPTH_MAX, text)) return { value: text };
  try {
    return { value: JSON.parse(text) };
  } catch {
    return null;
  }
}

/** The beginning of a text, for an error. */
export function excerpt(text: string): string {
  const bytes = Buffer.from(text);
  if (bytes.byteLength <= EXCERPT_BYTES_MAX) return text;
  const cut = bytes.subarray(0, EXCERPT_BYTES_MAX).toString();
  // A character that was cut through decodes to U+FFFD at the end: leave it out.
  return `${cut.replace(/\u{fffd}+$/u, "")}…`;
}

/** The end of a text, for an error. */
export function excerptOfEnd(text: string): string {
  const bytes = Buffer.from(text);
  if (bytes.byteLength <= EXCERPT_BYTES_MAX) return text;
  return `…${bytes
    .subarray(-EXCERPT_BYTES_MAX)
    .toString()
    .replace(/^\u{fffd}+/u, "")}`;
}

/**
 * Cuts the text of an answer until the whole answer fits as a result: quotes and line breaks take more room in JSON than in the
 * text. The other fields must fit by themselves.
 */
export function cutToFit<Answer extends { readonly text: string }>(
  answer: Answer,
): Answer & { readonly truncated: true } {
  let cut = { ...answer, truncated: true as const };
  for (let bytes = bytesOf(cut); bytes > ANSWER_BYTES_MAX && cut.text !== ""; bytes = bytesOf(cut)) {
    const length = Math.floor((cut.text.length * ANSWER_BYTES_MAX) / bytes) - 1;
    cut = { ...cut, text: cut.text.slice(0, Math.max(length, 0)).toWellFormed() };
  }
  return cut;
}

/** The size of an answer as JSON. */
export function bytesOf(answer: unknown): number {
  return Buffer.byteLength(JSON.stringify(answer));
}
