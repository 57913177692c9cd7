import { createHmac } from "node:crypto";
import type { TextBody } from "../model/text/text-body.ts";

export interface SignedContent {
  readonly id: string;
  /** Seconds since 1970. */
  readonly timestamp: number;
  readonly body: TextBody;
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
  return keys.map((key) => `v1,${digest(key, [`${id}.${timestamp}.`, ...[body].flat()])}`).join(" ");
}

function digest(key: Uint8Array, texts: readonly string[]): string {
  const hmac = createHmac("sha256", key);
  for (const text of texts) hmac.update(text);
  return hmac.digest("base64");
}
