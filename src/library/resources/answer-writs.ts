import { checkJson, RESULT_BYTES_MAX } from "../../engine/work/result-json.ts";
import { isObject } from "../../model/input/field-checks.ts";
import type { InvalidWrit, Writ } from "../../schedules/writ.ts";
import { writsIn } from "../../schedules/writs-in.ts";

/** The most that one answer can have: what is beyond is refused at once. */
export const ANSWER_WRITS_MAX = 5;

export interface AnswerWrits {
  /** The answer, as JSON keeps it. */
  readonly value: unknown;
  /** One at least. */
  readonly writs: readonly (Writ | InvalidWrit)[];
}

/** The writs in an answer; null: it has none, or cannot be kept. */
export function writsInAnswer(result: unknown): AnswerWrits | null {
  if (!mayHaveWrits(result)) return null;
  const checked = checkJson("result", result, RESULT_BYTES_MAX);
  if (!checked.ok) return null;
  const { value } = checked;
  const writs = textsOf(value).flatMap((text) => writsIn(text, { quotes: true }));
  return writs.length === 0 ? null : { value, writs };
}

/** The answer with what became of its writs; null: it has no room for that. */
export function withBlocks(value: unknown, blocks: readonly string[]): unknown {
  const told =
    typeof value === "string" ? [value, "", ...blocks].join("\n") : { ...(value as object), writs: blocks };
  return checkJson("result", told, RESULT_BYTES_MAX).ok ? told : null;
}

/** Nearly no answer has any, and to copy each as JSON just to see that would cost every task. */
function mayHaveWrits(result: unknown): boolean {
  if (typeof result === "string") return NAME.test(result);
  if (!isObject(result)) return false;
  // Iterates over the keys, which is three times as fast as over the values of a large object.
  return mayBeText(result) || Object.keys(result).some((key) => mayBeText(result[key]));
}

/** Whether it is a text with a writ, or says itself what it is as JSON. */
function mayBeText(value: unknown): boolean {
  return typeof value === "string"
    ? NAME.test(value)
    : isObject(value) && typeof value["toJSON"] === "function";
}

const NAME = /\/schedule/i;

/** Where an answer may have them: it is a text, or has some. */
function textsOf(result: unknown): string[] {
  if (typeof result === "string") return [result];
  return isObject(result) ? Object.values(result).filter((value) => typeof value === "string") : [];
}
