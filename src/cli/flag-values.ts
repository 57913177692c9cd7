import { parseSpan } from "./times.ts";
import { UsageError } from "./usage-error.ts";

/** JSON on the command line. */
export function jsonFlag(flag: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new UsageError(`${flag} must be JSON, like '{"key": "value"}': ${(error as Error).message}`);
  }
}

/** Numbers are numbers; everything else stays a text, and the server says what it must be. */
export function numberFlag(text: string): number | string {
  return /^-?\d+(?:\.\d+)?$/.test(text) ? Number(text) : text;
}

/** A moment as it is, or a span from now: `10m`. */
export function momentFlag(text: string, now: number): string {
  const ms = parseSpan(text);
  return ms === undefined ? text : new Date(now + ms).toISOString();
}

/** Milliseconds as a number, or a span: `30s`. */
export function spanFlag(text: string): number | string {
  return parseSpan(text) ?? numberFlag(text);
}

/** Seconds to wait, as a number or a span. */
export function secondsFlag(flag: string, text: string): number {
  const seconds = /^\d+(?:\.\d+)?$/.test(text) ? Number(text) : (parseSpan(text) ?? Number.NaN) / 1_000;
  if (seconds > 0) return seconds;
  throw new UsageError(`${flag} must be a number of seconds above 0, or a span like 5m, not ${text}`);
}
