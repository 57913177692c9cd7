import { checkJson, RESULT_BYTES_MAX } from "../../engine/work/result-json.ts";
import { isObject } from "../../model/input/field-checks.ts";
import type { InvalidWrit, Writ } from "../../schedules/writ.ts";
import { writsIn } from "../../schedules/writs-in.ts";

/** The most writs of one result: those beyond it are refused. */
export const ANSWER_WRITS_MAX = 5;

export interface AnswerWrits {
  /** The result as JSON. */
  readonly value: unknown;
  /** At least one. */
  readonly writs: readonly (Writ | InvalidWrit)[];
}

/** The writs in a result; null: it has none, or cannot be stored. */
export function writsInAnswer(result: unknown): AnswerWrits | null {
  if (!mayHaveWrits(result)) return null;
  const checked = checkJson("result", result, RESULT_BYTES_MAX);
  if (!checked.ok) return null;
  const { value } = checked;
  const writs = textsOf(value).flatMap((text) => writsIn(text, { quotes: true }));
  return writs.length === 0 ? null : { value, writs };
}

/** The result with a block for each writ; null: it would be too large. */
export function withBlocks(value: unknown, blocks: readonly string[]): unknown {
  const extended =
    typeof value === "string" ? [value, "", ...blocks].join("\n") : { ...(value as object), writs: blocks };
  return checkJson("result", extended, RESULT_BYTES_MAX).ok ? extended : null;
}

/** A quick check: few results have writs, and a JSON copy of every result would slow down every task. */
function mayHaveWrits(result: unknown): boolean {
  if (typeof result === "string") return NAME.test(result);
  if (!isObject(result)) return false;
  // Iterates over the keys, which is three times as fast as over the values of a large object.
  return mayBeText(result) || Object.keys(result).some((key) => mayBeText(result[key]));
}

/** Whether it is a text that may have a writ, or has a `toJSON` that may return one. */
function mayBeText(value: unknown): boolean {
  return typeof value === "string"
    ? NAME.test(value)
    : isObject(value) && typeof value["toJSON"] === "function";
}

const NAME = /\/schedule/i;

/** The texts that may have writs: the result itself, or the values of its fields. */
function textsOf(result: unknown): string[] {
  if (typeof result === "string") return [result];
  return isObject(result) ? Object.values(result).filter((value) => typeof value === "string") : [];
}
