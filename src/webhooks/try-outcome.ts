import type { SettledTry } from "../storage/storage.ts";

/** The waits before the second, third and fourth try; there is no fifth. */
const WAITS_MS = [1_000, 5_000, 25_000] as const;
/** The part of a wait that is added or subtracted at random, so that many retries do not come at the same time. */
const JITTER = 0.2;
/** The longest wait that a receiver can ask for. */
const RETRY_AFTER_MAX_MS = 5 * 60 * 1_000;
/** Statuses with which `Retry-After` asks the caller to wait. */
const BUSY: readonly number[] = [429, 503];
/** The receiver refuses the callback for good. */
const GONE = 410;
const ERROR_LENGTH_MAX = 500;

/** The outcome of one try. */
export type TryOutcome =
  | { readonly kind: "answered"; readonly status: number; readonly retryAfterMs: number | undefined }
  | { readonly kind: "failed"; readonly error: string; readonly permanent: boolean };

export interface TryContext {
  /** Which try it was, from 1. */
  readonly tries: number;
  /** The storage's time. */
  readonly now: number;
  readonly random: () => number;
}

/** Decides from the outcome of a try whether its delivery is delivered, retried or failed. */
export function settleTry(
  outcome: TryOutcome,
  { tries, now, random }: TryContext,
): Omit<SettledTry, "seq" | "tries"> {
  const responseStatus = outcome.kind === "answered" ? outcome.status : null;
  const error = errorOf(outcome);
  if (error === null) return { status: "delivered", dueAt: null, responseStatus, error };
  const waitMs = WAITS_MS[tries - 1];
  if (waitMs === undefined || isPermanent(outcome)) {
    return { status: "failed", dueAt: null, responseStatus, error };
  }
  const ownMs = waitMs * (1 + JITTER * (2 * random() - 1));
  const dueAt = Math.ceil(now + Math.max(ownMs, askedMs(outcome)));
  return { status: "pending", dueAt, responseStatus, error };
}

/** Null: it was delivered. The error never contains the body of the response, which is not meant for Rota's users. */
function errorOf(outcome: TryOutcome): string | null {
  if (outcome.kind === "failed") return outcome.error.slice(0, ERROR_LENGTH_MAX).toWellFormed();
  const { status } = outcome;
  if (status >= 200 && status < 300) return null;
  return status >= 300 && status < 400 ? `HTTP ${status}: redirects are not followed` : `HTTP ${status}`;
}

function isPermanent(outcome: TryOutcome): boolean {
  return outcome.kind === "failed" ? outcome.permanent : outcome.status === GONE;
}

function askedMs(outcome: TryOutcome): number {
  if (outcome.kind === "failed" || !BUSY.includes(outcome.status)) return 0;
  return Math.min(outcome.retryAfterMs ?? 0, RETRY_AFTER_MAX_MS);
}
