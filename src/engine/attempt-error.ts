import { HttpError, PermanentError } from "../executors/errors.ts";
import type { Outcome } from "../model/outcome.ts";

/** Enough for a message and the top of a stack; a whole page of HTML is nobody's error message. */
export const ERROR_BYTES_MAX = 4_096;

/** What a throw of an executor means for its attempt. */
export function failureOf(thrown: unknown): Outcome {
  return {
    kind: "failed",
    error: errorText(thrown),
    permanent: isPermanent(thrown),
    ...(thrown instanceof HttpError && thrown.retryAfterMs !== undefined
      ? { retryAfterMs: thrown.retryAfterMs }
      : {}),
  };
}

function isPermanent(thrown: unknown): boolean {
  return thrown instanceof PermanentError || (thrown instanceof HttpError && thrown.permanent);
}

/** Whatever was thrown, as a text that every database stores and every reader can show. */
export function errorText(thrown: unknown): string {
  return cleanText(messageOf(thrown), ERROR_BYTES_MAX) || "failed without a message";
}

function messageOf(thrown: unknown): string {
  try {
    if (thrown instanceof Error) return String(thrown.message) || thrown.name;
    if (typeof thrown === "string") return thrown;
    if (typeof thrown === "object" && thrown !== null) {
      const { message } = thrown as { message?: unknown };
      return typeof message === "string" ? message : (JSON.stringify(thrown) ?? "failed without a message");
    }
    return String(thrown);
  } catch {
    // A getter or a toString of its own threw in turn.
    return "failed with an error that cannot be shown";
  }
}

/** Well-formed, without NUL (PostgreSQL refuses it), and no longer than `bytesMax` in UTF-8. */
export function cleanText(text: string, bytesMax: number): string {
  const clean = text
    .slice(0, bytesMax + 1)
    .toWellFormed()
    .replaceAll("\0", "\u{fffd}");
  if (Buffer.byteLength(clean) <= bytesMax && text.length <= bytesMax) return clean;
  const ellipsis = "…";
  const cut = Buffer.from(clean).subarray(0, bytesMax - Buffer.byteLength(ellipsis));
  // A character that was cut through decodes to U+FFFD at the end: leave it out.
  return cut.toString().replace(/\u{fffd}+$/u, "") + ellipsis;
}
