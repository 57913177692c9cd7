import { parseRfc3339 } from "../../model/text/rfc3339.ts";
import { UsageError } from "../terminal/usage-error.ts";
import { parseSpan } from "../views/times.ts";

/** Parses JSON on the command line. */
export function jsonFlag(flag: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const example = flag === "--executor" ? '{"type": "echo"}' : '{"key": "value"}';
    throw new UsageError(`${flag} must be JSON, like '${example}': ${(error as Error).message}`);
  }
}

/** Converts numbers. Other text stays as it is, and the server refuses it. */
export function numberFlag(text: string): number | string {
  return /^-?\d+(?:\.\d+)?$/.test(text) ? Number(text) : text;
}

/** A time as it is, or a span from now: `10m`, also `+10m` or `in 10m`. */
export function momentFlag(text: string, now: number): string {
  const ms = parseSpan(text.replace(/^\s*(?:\+|in\s)\s*/i, ""));
  return ms === undefined ? text : new Date(now + ms).toISOString();
}

/** A time as it is, or a span back from now: `2h`. */
export function pastMomentFlag(flag: string, text: string, now: number): string {
  const ms = parseSpan(text);
  if (ms !== undefined) return new Date(now - ms).toISOString();
  if (parseRfc3339(text) !== null) return text;
  throw new UsageError(
    `${flag} must be a span back from now like 2h, or a time like 2026-03-08T12:00:00Z, not ${text}`,
  );
}

/** A time in the future. Seconds since 1970 are accepted too. */
export function untilFlag(text: string): number | string {
  return /^\d+$/.test(text) ? Number(text) : momentFlag(text, Date.now());
}

/** Milliseconds as a number, or a span: `30s`. */
export function spanFlag(text: string): number | string {
  return parseSpan(text) ?? numberFlag(text);
}

/** The same in seconds: `2h` is 7200. */
export function secondsSpanFlag(text: string): number | string {
  const ms = parseSpan(text);
  return ms === undefined ? numberFlag(text) : ms / 1_000;
}

/** Seconds since 1970, from a time in RFC 3339 or a span back from now: `2h`. */
export function pastFlag(flag: string, text: string, now: number): number {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  const ms = parseSpan(text);
  const moment = ms === undefined ? parseRfc3339(text) : now - ms;
  if (moment !== null) return Math.floor(moment / 1_000);
  throw new UsageError(
    `${flag} must be a span back from now like 2h, a time like 2026-03-08T12:00:00Z, or seconds since 1970, not ${text}`,
  );
}

/** Seconds to wait, as a number or a span. */
export function secondsFlag(flag: string, text: string): number {
  const seconds = /^\d+(?:\.\d+)?$/.test(text) ? Number(text) : (parseSpan(text) ?? Number.NaN) / 1_000;
  if (seconds > 0) return seconds;
  throw new UsageError(`${flag} must be a number of seconds above 0, or a span like 5m, not ${text}`);
}
