import { createHmac, createSecretKey, type KeyObject, randomBytes, timingSafeEqual } from "node:crypto";
import { TASK_TOKEN_PREFIX } from "../model/text/task-token-mask.ts";

const KEY_BYTES = 32;
const SIGNATURE = /^[\w-]{43}$/;
/** Longer texts are no tokens: the longest tenant and task ids are far below. */
const LENGTH_MAX = 1_000;

/** The attempt that a token stands for. */
export interface TokenSubject {
  readonly tenant: string;
  readonly taskId: string;
  /** The fencing token of the attempt. */
  readonly fence: number;
}

export function newTokenKey(): string {
  return randomBytes(KEY_BYTES).toString("hex");
}

/** The key as the functions below need it. Made once: Node takes six times as long to sign with the bytes of a key. */
export function toTokenKey(hex: string): KeyObject {
  return createSecretKey(Buffer.from(hex, "hex"));
}

/** A text that proves that its bearer got it from an attempt. Whether the attempt is still live must be checked at each use. */
export function signTaskToken({ tenant, taskId, fence }: TokenSubject, key: KeyObject): string {
  const payload = Buffer.from(JSON.stringify([tenant, taskId, fence])).toString("base64url");
  return `${TASK_TOKEN_PREFIX}${payload}.${signatureOf(payload, key)}`;
}

/** Null: it was not signed with this key. */
export function readTaskToken(token: string, key: KeyObject): TokenSubject | null {
  if (!token.startsWith(TASK_TOKEN_PREFIX) || token.length > LENGTH_MAX) return null;
  const [payload = "", signature = "", ...rest] = token.slice(TASK_TOKEN_PREFIX.length).split(".");
  if (rest.length > 0 || !SIGNATURE.test(signature)) return null;
  if (!timingSafeEqual(Buffer.from(signature), Buffer.from(signatureOf(payload, key)))) return null;
  const [tenant, taskId, fence] = JSON.parse(Buffer.from(payload, "base64url").toString());
  return { tenant, taskId, fence };
}

function signatureOf(payload: string, key: KeyObject): string {
  return createHmac("sha256", key).update(payload).digest("base64url");
}
