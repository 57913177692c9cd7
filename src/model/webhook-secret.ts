const PREFIX = "whsec_";
/** The length of a key in Standard Webhooks. */
const KEY_BYTES = { min: 24, max: 64 } as const;

/** The form of a secret, as the rest of "`webhooks.secret` must be …". */
export const WEBHOOK_SECRET_FORM =
  '"whsec_" and the key in base64, as `echo "whsec_$(openssl rand -base64 32)"` prints it';

/**
 * The key of a secret; null: the secret is invalid. After `whsec_` the key is base64. Without that prefix, base64 of 24 to 64
 * bytes is decoded, as the verifying libraries do, and any other text is the key itself.
 */
export function webhookKey(secret: string): Uint8Array | null {
  if (secret.startsWith(PREFIX)) return fromBase64(secret.slice(PREFIX.length));
  const key = fromBase64(secret);
  if (key !== null && key.length >= KEY_BYTES.min && key.length <= KEY_BYTES.max) return key;
  return secret.trim() === "" ? null : new TextEncoder().encode(secret);
}

function fromBase64(text: string): Uint8Array | null {
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(text) || text.length % 4 !== 0) return null;
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}
