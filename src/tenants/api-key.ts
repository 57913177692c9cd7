import { createHash, randomBytes } from "node:crypto";

/** Makes a key recognizable in a log or a repository. */
const PREFIX = "rota_";
/** Too many to guess, so that a fast hash without salt is enough. */
const SECRET_BYTES = 32;
const FORM = /^rota_[A-Za-z0-9_-]{43}$/;

/** A new random key. */
export function newApiKey(): string {
  return PREFIX + randomBytes(SECRET_BYTES).toString("base64url");
}

/** Whether a text has the form of a key: other texts are not looked up. */
export function isApiKey(text: string): boolean {
  return FORM.test(text);
}

/** The hash of a key, which is stored instead of the key. */
export function hashOf(key: string): string {
  return createHash("sha256").update(key).digest("base64url");
}
