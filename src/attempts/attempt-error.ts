import { HttpError, NoExecutorError, PermanentError } from "../executors/errors.ts";
import type { Outcome } from "../model/outcome.ts";

/** Enough for a message and the top of a stack. A whole page of HTML is cut. */
export const ERROR_BYTES_MAX = 4_096;
const ELLIPSIS = "…";
/** Works in browsers, too: workers of the client end attempts by the same rules. */
const encoder = new TextEncoder();

/**
 * Returns the outcome of an attempt whose executor threw. Never throws, for any thrown value: getters, `toJSON` and the traps
 * of a Proxy, which even `instanceof` calls, are foreign code.
 */
export function failureOf(thrown: unknown): Outcome {
  const failed = { kind: "failed", error: errorText(thrown) } as const;
  try {
    if (thrown instanceof NoExecutorError) return { kind: "not_executed", error: failed.error };
    return { ...failed, permanent: isPermanent(thrown), ...askedWait(thrown) };
  } catch {
    return { ...failed, permanent: false };
  }
}

function isPermanent(thrown: unknown): boolean {
  return thrown instanceof PermanentError || (thrown instanceof HttpError && thrown.permanent === true);
}

function askedWait(thrown: unknown): { retryAfterMs?: number } {
  const retryAfterMs: unknown = thrown instanceof HttpError ? thrown.retryAfterMs : undefined;
  return typeof retryAfterMs === "number" && retryAfterMs >= 0 ? { retryAfterMs } : {};
}

/** Any thrown value as a text that every database can store. Never throws. */
export function errorText(thrown: unknown): string {
  try {
    return cleanText(messageOf(thrown), ERROR_BYTES_MAX) || "failed without a message";
  } catch {
    return "failed with an error that cannot be shown";
  }
}

/** Messages and names may be of any type, so each is converted to a string. */
function messageOf(thrown: unknown): string {
  if (thrown instanceof Error) return String(thrown.message ?? "") || String(thrown.name ?? "");
  if (typeof thrown !== "object" || thrown === null) return String(thrown);
  const { message } = thrown as { message?: unknown };
  return typeof message === "string" ? message : (JSON.stringify(thrown) ?? "");
}

/** Well-formed, without NUL (PostgreSQL refuses it), and no longer than `bytesMax` in UTF-8. */
export function cleanText(text: string, bytesMax: number): string {
  const clean = text
    .slice(0, bytesMax + 1)
    .toWellFormed()
    .replaceAll("\0", "\u{fffd}");
  // A UTF-16 unit takes three bytes at most.
  if (3 * text.length <= bytesMax) return clean;
  const bytes = encoder.encode(clean);
  if (bytes.byteLength <= bytesMax && text.length <= bytesMax) return clean;
  const cut = bytes.subarray(0, bytesMax - encoder.encode(ELLIPSIS).byteLength);
  // A character that was cut through decodes to U+FFFD at the end: leave it out.
  return new TextDecoder().decode(cut).replace(/\u{fffd}+$/u, "") + ELLIPSIS;
}
