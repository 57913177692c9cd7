import { isDeeperThan } from "../model/json-depth.ts";
import { JSON_DEPTH_MAX } from "../model/task-input.ts";

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
  return cutShort(text);
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

/** Quotes and line breaks take more room in JSON than in the text, so that it is cut until it fits. */
function cutShort(text: string): { truncated: true; text: string } {
  let answer = { truncated: true as const, text };
  for (let bytes = bytesOf(answer); bytes > ANSWER_BYTES_MAX; bytes = bytesOf(answer)) {
    const length = Math.floor((answer.text.length * ANSWER_BYTES_MAX) / bytes) - 1;
    answer = { truncated: true, text: answer.text.slice(0, length).toWellFormed() };
  }
  return answer;
}

function bytesOf(answer: unknown): number {
  return Buffer.byteLength(JSON.stringify(answer));
}
