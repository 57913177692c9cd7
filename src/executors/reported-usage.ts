import { isObject, quoted } from "../model/input/field-checks.ts";
import { excerpt, readJson } from "./answer-text.ts";
import type { ExecutorContext, Usage } from "./executor.ts";

/** Longer names of models are not kept. */
const MODEL_LENGTH_MAX = 256;
const COUNTS = ["inputTokens", "outputTokens", "contextTokens", "contextWindow", "costMicros"] as const;

type UsageContext = Pick<ExecutorContext, "usage" | "log">;

/**
 * Passes on the usage that an agent reports. A report that cannot be read must not fail the task: it is ignored, and logged once
 * for each executor.
 */
export class ReportedUsage {
  #warned = false;

  /** Reports the header `X-Rota-Usage`, which is JSON. Returns whether there was a report that could be read. */
  ofHeader(header: string | null, context: UsageContext): boolean {
    if (header === null) return false;
    const json = readJson(header);
    if (json !== null && isObject(json.value)) return this.#report(readUsage(json.value), context);
    return this.#refuse(
      `the header X-Rota-Usage must be a JSON object, not ${quoted(excerpt(header))}`,
      context,
    );
  }

  /** Reports the field `usage` of a JSON response. Ignores a `usage` that has another meaning. */
  ofAnswer(answer: unknown, context: UsageContext): boolean {
    return isObject(answer) && this.#report(readUsage(answer["usage"]), context);
  }

  /** The same for a report that was found elsewhere. */
  of(reported: unknown, context: UsageContext): Usage | null {
    return this.#report(readUsage(reported), context) ? usageIn(reported) : null;
  }

  #report(read: ReadUsage | null, context: UsageContext): boolean {
    if (read === null) return false;
    if (!read.ok) return this.#refuse(read.error, context);
    context.usage(read.usage);
    return true;
  }

  #refuse(error: string, { log }: UsageContext): false {
    if (!this.#warned)
      log.warn({}, `${error}; this report and further wrong ones of this executor are ignored`);
    this.#warned = true;
    return false;
  }
}

/** The usage in a report. Null if it is not a report, or a wrong one. */
export function usageIn(reported: unknown): Usage | null {
  const read = readUsage(reported);
  return read?.ok === true ? read.usage : null;
}

type ReadUsage =
  | { readonly ok: true; readonly usage: Usage }
  | { readonly ok: false; readonly error: string };

/** Null if it is not a report: it has no field that we know. */
function readUsage(reported: unknown): ReadUsage | null {
  if (!isObject(reported)) return null;
  const counts = COUNTS.map((name) => [name, reported[name]] as const).filter(([, value]) => value != null);
  if (counts.length === 0) return null;
  const wrong = counts.find(([, value]) => !isCount(value));
  if (wrong !== undefined) {
    const [name, value] = wrong;
    return { ok: false, error: `\`usage.${name}\` must be a whole number from 0 on, not ${quoted(value)}` };
  }
  const { model } = reported;
  const named = typeof model === "string" && model !== "" && model.length <= MODEL_LENGTH_MAX;
  return { ok: true, usage: { ...Object.fromEntries(counts), ...(named ? { model } : {}) } };
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
