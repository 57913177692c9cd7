const PREFIX = "whsec_";
/** What Standard Webhooks ask of a key. */
const KEY_BYTES = { min: 24, max: 64 } as const;

/** What a secret has to be, as the rest of "`webhooks.secret` must be …". */
export const WEBHOOK_SECRET_FORM =
  '"whsec_" and the key in base64, as `echo "whsec_$(openssl rand -base64 32)"` prints it';

/**
 * The key that a secret stands for; null when it stands for none. After `whsec_` it is base64. Without that, what is
 * base64 of 24 to 64 bytes is taken for it, as the libraries that verify do, and anything else is the key itself.
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
