import type { Usage } from "../executors/executor.ts";
import type { TaskUsage } from "../model/task.ts";

/** What an attempt has used so far. */
export interface UsageSum extends TaskUsage {
  /** How much of the context window its last model call used. */
  readonly contextTokens?: number;
}

export type AddedUsage =
  | { readonly ok: true; readonly sum: UsageSum }
  | { readonly ok: false; readonly error: string };

/**
 * Adds a usage report of an attempt to its earlier ones. A report with an invalid field is refused as a whole. Context tokens
 * are not added up: each call of a model gets the whole context. `agentWindow` is the context window that the agent names; it
 * applies if no report names another.
 */
export function addUsage(before: UsageSum | null, reported: Usage, agentWindow?: number): AddedUsage {
  if (typeof reported !== "object" || reported === null)
    return refused(`must be an object, not ${nameOf(reported)}`);
  const { inputTokens, outputTokens, contextTokens, contextWindow, costMicros } = reported;
  const counts = { inputTokens, outputTokens, contextTokens, contextWindow, costMicros };
  const given = Object.entries(counts).filter(([, value]) => value !== undefined);
  if (given.length === 0) return refused("needs `inputTokens`, `outputTokens` or `contextWindow`");
  const wrong = given.find(([, value]) => !isCount(value));
  if (wrong !== undefined) {
    return refused(`needs a whole number from 0 on as \`${wrong[0]}\`, not ${nameOf(wrong[1])}`);
  }
  const window = contextWindow ?? before?.contextWindow ?? agentWindow;
  const isOfCall = inputTokens !== undefined || outputTokens !== undefined;
  const ofCall = isOfCall ? (inputTokens ?? 0) + (outputTokens ?? 0) : undefined;
  const inContext = contextTokens ?? ofCall ?? before?.contextTokens;
  const sum = {
    inputTokens: (before?.inputTokens ?? 0) + (inputTokens ?? 0),
    outputTokens: (before?.outputTokens ?? 0) + (outputTokens ?? 0),
    ...(inContext === undefined ? {} : { contextTokens: inContext }),
    ...(window === undefined ? {} : { contextWindow: window }),
  };
  if (isCount(sum.inputTokens) && isCount(sum.outputTokens)) return { ok: true, sum };
  return refused(`adds up to more than ${Number.MAX_SAFE_INTEGER} tokens`);
}

function refused(why: string): AddedUsage {
  return { ok: false, error: `usage ${why}` };
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

/** Executors in plain JavaScript may pass any value: a number is shown, of other values the type. */
function nameOf(value: unknown): string {
  if (value == null || typeof value === "number") return String(value);
  return `a value of type ${typeof value}`;
}
