import { jsonText } from "./json-text.ts";

/** Replaces a secret. */
export const MASK = "…";

/** Shorter values are not searched for in texts: they occur in ordinary words. */
const SECRET_LENGTH_MIN = 8;

/** More than a real task has. Each costs a search through the text, so a hostile task could keep the process busy. */
const SECRETS_MAX = 100;

/** The rest of a secret where a text was cut is hidden if it is at least this long. */
const PART_LENGTH_MIN = 4;
/** How many beginnings or ends of a secret are tried where a text was cut: more than one only if it repeats itself. */
const PARTS_MAX = 20;

/**
 * Masks these secrets in a text, the longest first; short ones are ignored. It finds a secret as it is, as JSON and in a URL,
 * also if an ellipsis shows that the text was cut within the secret.
 */
export function hideValues(text: string, secrets: readonly string[]): string {
  return hidden(text, formsOfAll(secrets));
}

/** The same for many texts: the search patterns are made once. */
export function valueHider(secrets: readonly string[]): (text: string) => string {
  const forms = formsOfAll(secrets);
  return (text) => hidden(text, forms);
}

function hidden(text: string, forms: readonly string[]): string {
  return forms.reduce((rest, form) => hideEnd(hideStart(rest.replaceAll(form, MASK), form), form), text);
}

function formsOfAll(secrets: readonly string[]): string[] {
  const long = secrets.filter((secret) => secret.length >= SECRET_LENGTH_MIN);
  return longestFirst(longestFirst(long).slice(0, SECRETS_MAX).flatMap(formsOf));
}

/** The same for a JSON value. If masking breaks the JSON, because a secret looks like a part of it, the whole value is hidden. */
export function hideValuesInJson(value: unknown, secrets: readonly string[]): unknown {
  const text = jsonText(value) ?? "";
  // Searches the text of the whole value: a search for each secret in a hundred thousand strings would take seconds.
  const rest = hideValues(text, secrets);
  if (rest === text) return value;
  try {
    return JSON.parse(rest);
  } catch {
    return MASK;
  }
}

function longestFirst(secrets: readonly string[]): string[] {
  return [...new Set(secrets)].sort((a, b) => b.length - a.length);
}

/** The forms of a secret in texts: servers quote requests as JSON, and their clients quote that again. */
function formsOf(secret: string): string[] {
  const inJson = JSON.stringify(secret).slice(1, -1);
  return [secret, inJson, JSON.stringify(inJson).slice(1, -1), encodeURIComponent(secret.toWellFormed())];
}

/** Hides the beginning of a secret before the ellipsis that ends a text. */
function hideEnd(text: string, secret: string): string {
  if (!text.endsWith(MASK)) return text;
  const end = text.length - MASK.length;
  const begin = secret.slice(0, PART_LENGTH_MIN);
  let at = text.indexOf(begin, Math.max(end - secret.length, 0));
  for (let parts = 0; at !== -1 && parts < PARTS_MAX; parts += 1) {
    if (secret.startsWith(text.slice(at, end))) return at < end ? text.slice(0, at) + MASK : text;
    at = text.indexOf(begin, at + 1);
  }
  return text;
}

/** Hides the end of a secret after the first ellipsis of a text. */
function hideStart(text: string, secret: string): string {
  const start = text.indexOf(MASK) + MASK.length;
  if (start === 0) return text;
  const ending = secret.slice(-PART_LENGTH_MIN);
  let at = text.lastIndexOf(ending, start + secret.length);
  for (let parts = 0; at >= start && parts < PARTS_MAX; parts += 1) {
    const end = at + ending.length;
    if (secret.endsWith(text.slice(start, end))) return text.slice(0, start) + text.slice(end);
    at = text.lastIndexOf(ending, at - 1);
  }
  return text;
}
