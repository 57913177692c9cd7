import type { ParsedText } from "./parsed-text.ts";

/**
 * Parses a JSON text. Error messages of the engine repeat the text around an unexpected token, which may be a secret. So only
 * the first part of the message is kept, and line and column are added.
 */
export function parseJson(text: string): ParsedText {
  const error = jsonError(text);
  if (error === null) return { ok: true, value: JSON.parse(text) };
  const offset = offsetOf(error, text);
  const before = text.slice(0, offset).split("\n");
  return {
    ok: false,
    faults: [{ message: reasonOf(error), line: before.length, column: (before.at(-1) as string).length + 1 }],
  };
}

function jsonError(text: string): string | null {
  try {
    JSON.parse(text);
    return null;
  } catch (error) {
    return (error as Error).message;
  }
}

const UNEXPECTED_TOKEN = /^Unexpected token (?:'(.)'|.)/su;

function reasonOf(error: string): string {
  const token = UNEXPECTED_TOKEN.exec(error);
  return token === null ? error.replace(/(?: in JSON)? at position .*$/s, "") : token[0];
}

/**
 * Most messages name the position. Those about an unexpected token do not: the token is the last character of the shortest
 * prefix of the text with this error.
 */
function offsetOf(error: string, text: string): number {
  const position = / at position (\d+)/.exec(error)?.[1];
  if (position !== undefined) return Number(position);
  if (!UNEXPECTED_TOKEN.test(error)) return text.length;
  let [good, bad] = [0, text.length];
  while (bad - good > 1) {
    const middle = Math.floor((good + bad) / 2);
    if (UNEXPECTED_TOKEN.test(jsonError(text.slice(0, middle)) ?? "")) bad = middle;
    else good = middle;
  }
  return bad - 1;
}
