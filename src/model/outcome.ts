import { type RetryPolicy, retryDelayMs } from "./retry-policy.ts";

/** How one attempt ended, as the runner saw it. */
export type Outcome =
  /** `text`: the JSON of a result that is a large text, where it is known. */
  | { readonly kind: "done"; readonly result: unknown; readonly text?: string }
  /** `permanent`: a retry would fail again. `retryAfterMs`: the called server asked for this delay. */
  | {
      readonly kind: "failed";
      readonly error: string;
      readonly permanent: boolean;
      readonly retryAfterMs?: number;
    }
  /** Past the task's own deadline: never retried. */
  | { readonly kind: "deadline"; readonly error: string }
  /** The node is stopping: back to the queue without counting a retry, or failed if no retry is left. */
  | { readonly kind: "interrupted"; readonly error: string }
  /** This node has no executor for it after all: back to the queue, for a node that has one. */
  | { readonly kind: "not_executed"; readonly error: string };

/** The state that an outcome moves the task to. */
export type Settlement =
  | { readonly to: "done"; readonly result: unknown; readonly text?: string }
  | { readonly to: "failed"; readonly error: string }
  /** A retry, counted, that starts no earlier than `runAt`. */
  | { readonly to: "delayed"; readonly error: string; readonly runAt: number }
  /** Back to its position in the queue, not counted as a retry. */
  | { readonly to: "queued"; readonly error: string };

export interface SettleContext {
  readonly retryPolicy: RetryPolicy;
  readonly retryCount: number;
  readonly deadline: number | null;
  readonly now: number;
  readonly random: () => number;
}

/** Maps an outcome to a state. No other code does. */
export function settle(outcome: Outcome, context: SettleContext): Settlement {
  switch (outcome.kind) {
    case "done":
      return outcome.text === undefined
        ? { to: "done", result: outcome.result }
        : { to: "done", result: outcome.result, text: outcome.text };
    case "deadline":
      return { to: "failed", error: outcome.error };
    case "not_executed":
      return { to: "queued", error: outcome.error };
    case "interrupted":
      return hasRetriesLeft(context)
        ? { to: "queued", error: outcome.error }
        : { to: "failed", error: outcome.error };
    case "failed": {
      if (outcome.permanent || !hasRetriesLeft(context)) return { to: "failed", error: outcome.error };
      const runAt = context.now + retryWaitMs(outcome.retryAfterMs, context);
      // A retry after the deadline could never start.
      if (context.deadline !== null && runAt >= context.deadline)
        return { to: "failed", error: outcome.error };
      return { to: "delayed", error: outcome.error, runAt };
    }
  }
}

function hasRetriesLeft(context: SettleContext): boolean {
  return context.retryCount < context.retryPolicy.maxRetries;
}

/** The requested delay applies if it is longer than our own backoff, up to `maxBackoffMs` of the policy. */
function retryWaitMs(retryAfterMs: number | undefined, context: SettleContext): number {
  const own = retryDelayMs(context.retryPolicy, context.retryCount, context.random);
  if (retryAfterMs === undefined) return own;
  return Math.max(own, Math.min(retryAfterMs, context.retryPolicy.maxBackoffMs));
}
