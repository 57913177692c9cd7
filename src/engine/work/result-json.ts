import { errorText } from "../../attempts/attempt-error.ts";
import { aTypeOf } from "../../model/input/field-checks.ts";
import { JSON_DEPTH_MAX } from "../../model/input/task-input.ts";
import { isDeeperThan } from "../../model/text/json-depth.ts";
import { rememberText } from "../../model/text/json-text.ts";
import { jsonWeight } from "../../model/text/json-weight.ts";

/** The most a result may take, as JSON. */
export const RESULT_BYTES_MAX = 1_048_576;

export type Checked =
  /**
   * `bytes`: about how many the value takes in memory. `text`: the JSON of a value that is a large text; `jsonText` caches that of
   * objects only.
   */
  | { readonly ok: true; readonly value: unknown; readonly bytes: number; readonly text?: string }
  | { readonly ok: false; readonly error: string };

/**
 * Returns a value of an executor as JSON represents it, or why it cannot be stored. Objects are copied, so that later changes
 * by the executor do not reach the stored value. Never throws, even if a getter or `toJSON` of the value does.
 */
export function checkJson(what: string, value: unknown, bytesMax: number): Checked {
  const simple = checkSimple(value, bytesMax);
  if (simple !== null) return simple;
  const steps = checkText(what, value, bytesMax);
  for (;;) {
    const { done, value: checked } = steps.next();
    if (done) return checked;
  }
}

/** The same in steps. Each may take some tens of milliseconds if the value is large. */
export function* checkJsonSteps(
  what: string,
  value: unknown,
  bytesMax: number,
): Generator<void, Checked, void> {
  return checkSimple(value, bytesMax) ?? (yield* checkText(what, value, bytesMax));
}

/** Returns null if the value must be serialized to be checked. */
function checkSimple(value: unknown, bytesMax: number): Checked | null {
  if (value === undefined || value === null) return { ok: true, value: null, bytes: 0 };
  if (typeof value === "boolean") return { ok: true, value, bytes: 0 };
  if (typeof value === "number") return { ok: true, value: Number.isFinite(value) ? value : null, bytes: 0 };
  // A UTF-16 unit takes six bytes at most, as in \u0000.
  if (typeof value === "string" && value.length * 6 + 2 <= bytesMax)
    return { ok: true, value: value.toWellFormed(), bytes: value.length };
  return null;
}

function* checkText(what: string, value: unknown, bytesMax: number): Generator<void, Checked, void> {
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch (error) {
    return { ok: false, error: `${what} is not JSON: ${firstLine(error)}` };
  }
  if (text === undefined) return { ok: false, error: `${what} is not JSON: it is ${aTypeOf(value)}` };
  const bytes = Buffer.byteLength(text);
  if (bytes > bytesMax) {
    return { ok: false, error: `${what} is too large: ${bytes} bytes of JSON, at most ${bytesMax} are kept` };
  }
  if (isDeeperThan(JSON_DEPTH_MAX, text)) {
    return { ok: false, error: `${what} is nested deeper than ${JSON_DEPTH_MAX} levels` };
  }
  // Nothing can change a text, so it needs no copy.
  if (typeof value === "string") {
    const checked = { ok: true, bytes: value.length } as const;
    return value.isWellFormed() ? { ...checked, value, text } : { ...checked, value: value.toWellFormed() };
  }
  yield;
  const copy: unknown = JSON.parse(text);
  rememberText(copy, text);
  return { ok: true, value: copy, bytes: jsonWeight(text) };
}

/** V8 describes a cycle in several lines; the first says what is wrong. A `toJSON` may throw any value. */
function firstLine(error: unknown): string {
  const text = errorText(error);
  return text.split("\n", 1)[0] || text;
}
