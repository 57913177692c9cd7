import { createHmac } from "node:crypto";

export interface SignedContent {
  readonly id: string;
  /** Seconds since 1970. */
  readonly timestamp: number;
  readonly body: string;
}

/**
 * The `webhook-signature` of Standard Webhooks: proves that a holder of a key sent this body, with this id, at this time. With
 * several keys, a receiver that has one of them can verify it.
 */
export function signature(
  keys: readonly Uint8Array[],
  { id, timestamp, body }: SignedContent,
): string | null {
  if (keys.length === 0) return null;
  const content = `${id}.${timestamp}.${body}`;
  return keys.map((key) => `v1,${createHmac("sha256", key).update(content).digest("base64")}`).join(" ");
}
