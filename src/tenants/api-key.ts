import { createHash, randomBytes } from "node:crypto";

/** Whoever finds one, in a log or a repository, knows what it is. */
const PREFIX = "rota_";
/** As many as nobody guesses, whatever the hash: it needs no salt and no slowness. */
const SECRET_BYTES = 32;
const FORM = /^rota_[A-Za-z0-9_-]{43}$/;

/** A key that nobody has. */
export function newApiKey(): string {
  return PREFIX + randomBytes(SECRET_BYTES).toString("base64url");
}

/** Whether a text can be a key at all: what cannot is not looked for. */
export function isApiKey(text: string): boolean {
  return FORM.test(text);
}

/** What is kept of a key. */
export function hashOf(key: string): string {
  return createHash("sha256").update(key).digest("base64url");
}
