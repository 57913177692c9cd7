import { createHmac } from "node:crypto";

export interface SignedContent {
  readonly id: string;
  /** Seconds since 1970. */
  readonly timestamp: number;
  readonly body: string;
}

/** The `webhook-signature` of Standard Webhooks: only whoever has the key can have sent this, with this id, then. */
export function signature(key: Uint8Array, { id, timestamp, body }: SignedContent): string {
  const hash = createHmac("sha256", key).update(`${id}.${timestamp}.${body}`).digest("base64");
  return `v1,${hash}`;
}
