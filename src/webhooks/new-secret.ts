import { randomBytes } from "node:crypto";

/** The length of the secret: that of the SHA-256 hash. */
const SECRET_BYTES = 32;

/** A new random signing secret, in the form of Standard Webhooks. */
export function newWebhookSecret(): string {
  return `whsec_${randomBytes(SECRET_BYTES).toString("base64")}`;
}
