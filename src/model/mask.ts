/** Replaces a secret. */
export const MASK = "…";

/** Shorter values are not searched for in texts: they occur in ordinary words. */
const SECRET_LENGTH_MIN = 8;

/** More than a real task has. Each costs a search through the text, so a hostile task could keep the process busy. */
const SECRETS_MAX = 100;

/** A text with a mask in place of each of these secrets, the longest first; short ones are left alone. */
export function hideValues(text: string, secrets: readonly string[]): string {
  return [...new Set(secrets)]
    .filter((secret) => secret.length >= SECRET_LENGTH_MIN)
    .sort((a, b) => b.length - a.length)
    .slice(0, SECRETS_MAX)
    .reduce((rest, secret) => rest.replaceAll(secret, MASK), text);
}
