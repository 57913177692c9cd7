import { JSON_DEPTH_MAX } from "../model/input/task-input.ts";
import { isDeeperThan } from "../model/text/json-depth.ts";

/** How much of an answer is read, and how much the result may take as JSON. */
export const ANSWER_BYTES_MAX = 1_048_576;
/** How much of what somebody said about a failure its error repeats. */
export const EXCERPT_BYTES_MAX = 1_024;

/** What somebody answered, or the beginning of it. */
export interface AnswerText {
  readonly text: string;
  readonly truncated: boolean;
}

/** An answer as the result of a task: what its JSON says if it is to be read as that, else the text. */
export function resultOfText({ text, truncated }: AnswerText, { json }: { json: boolean }): unknown {
  if (!truncated) {
    const said = json ? readJson(text) : null;
    const answer = said === null ? text : said.value;
    if (bytesOf(answer) <= ANSWER_BYTES_MAX) return answer;
  }
  return cutToFit({ truncated: true, text });
}

/** A part of an answer that does not fit as a result. */
export function tooLong(): Error {
  return new Error(`a part of the answer is longer than ${ANSWER_BYTES_MAX} characters`);
}

/** What a JSON text says; null when it is none. What is nested deeper than a result may be stays the text it is. */
export function readJson(text: string): { readonly value: unknown } | null {
  if (isDeeperThan(JSON_DEPTH_MAX, text)) return { value: text };
  try {
    return { value: JSON.parse(text) };
  } catch {
    return null;
  }
}

/** The beginning of a text, as an error may repeat it. */
export function excerpt(text: string): string {
  const bytes = Buffer.from(text);
  if (bytes.byteLength <= EXCERPT_BYTES_MAX) return text;
  const cut = bytes.subarray(0, EXCERPT_BYTES_MAX).toString();
  // A character that was cut through decodes to U+FFFD at the end: leave it out.
  return `${cut.replace(/\u{fffd}+$/u, "")}…`;
}

/** The end of a text, as an error may repeat it. */
export function excerptOfEnd(text: string): string {
  const bytes = Buffer.from(text);
  if (bytes.byteLength <= EXCERPT_BYTES_MAX) return text;
  return `…${bytes
    .subarray(-EXCERPT_BYTES_MAX)
    .toString()
    .replace(/^\u{fffd}+/u, "")}`;
}

/**
 * An answer with its text cut until all of it fits as a result: quotes and line breaks take more room in JSON than in the
 * text. The rest of it must fit by itself.
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

/** What an answer takes as JSON. */
export function bytesOf(answer: unknown): number {
  return Buffer.byteLength(JSON.stringify(answer));
}
