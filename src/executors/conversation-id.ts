import { createHash } from "node:crypto";
import { DEFAULT_TENANT } from "../model/tenant.ts";

/** The namespace of the UUIDv5 of conversations. It must never change: agents store conversations under these ids. */
const NAMESPACE = Buffer.from("6f1d0c52-8a3e-5b7f-9c44-2e7a51d3b0a9".replaceAll("-", ""), "hex");

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

export interface ConversationName {
  readonly tenantId: string;
  /** The key of the session, or the conversation id of the schedule. */
  readonly key: string;
  /** How often the session was reset. Each reset begins another conversation. */
  readonly generation: number;
}

/**
 * The UUID of a conversation. In the default tenant a key that is a UUID stays as it is. Any other key becomes the UUIDv5 of
 * tenant, zero byte, key and, after a reset, another zero byte and the generation. Neither tenants nor keys contain zero bytes,
 * so no two conversations share a UUID.
 */
export function conversationId({ tenantId, key, generation }: ConversationName): string {
  if (tenantId === DEFAULT_TENANT && UUID.test(key)) return key;
  return uuidV5([tenantId, key, ...(generation > 0 ? [String(generation)] : [])].join("\0"));
}

function uuidV5(name: string): string {
  const hash = createHash("sha1").update(NAMESPACE).update(name).digest().subarray(0, 16);
  hash.writeUInt8((hash.readUInt8(6) & 0x0f) | 0x50, 6);
  hash.writeUInt8((hash.readUInt8(8) & 0x3f) | 0x80, 8);
  return hash.toString("hex").replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}
