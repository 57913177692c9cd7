/** What stands where a secret is. */
export const MASK = "…";

/** Shorter words are no secrets, and stand in many a sentence. */
const SECRET_LENGTH_MIN = 8;

/** Nobody has more: a task that claims to would keep its process busy with a search for each. */
const SECRETS_MAX = 100;

/** A text with a mask in place of each of these secrets, the longest first; short ones are left alone. */
export function hideValues(text: string, secrets: readonly string[]): string {
  return [...new Set(secrets)]
    .filter((secret) => secret.length >= SECRET_LENGTH_MIN)
    .sort((a, b) => b.length - a.length)
    .slice(0, SECRETS_MAX)
    .reduce((rest, secret) => rest.replaceAll(secret, MASK), text);
}
