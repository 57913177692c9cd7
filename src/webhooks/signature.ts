import { createHmac } from "node:crypto";

export interface SignedContent {
  readonly id: string;
  /** Seconds since 1970. */
  readonly timestamp: number;
  readonly body: string;
}

/**
 * The `webhook-signature` of Standard Webhooks: only a holder of a key can have sent this, with this id, then. With several keys
 * a receiver that has one of them can check it.
 */
export function signature(
  keys: readonly Uint8Array[],
  { id, timestamp, body }: SignedContent,
): string | null {
  if (keys.length === 0) return null;
  const content = `${id}.${timestamp}.${body}`;
  return keys.map((key) => `v1,${createHmac("sha256", key).update(content).digest("base64")}`).join(" ");
}
