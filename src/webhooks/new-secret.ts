import { randomBytes } from "node:crypto";

/** As long as the hash that it keys. */
const SECRET_BYTES = 32;

/** A new random signing secret, in the form of Standard Webhooks. */
export function newWebhookSecret(): string {
  return `whsec_${randomBytes(SECRET_BYTES).toString("base64")}`;
}
