import { hash, randomBytes } from "node:crypto";
import type { AttemptSecret } from "../../storage/storage.ts";

const PREFIX = "att_";
const NONCE_BYTES = 16;
const NONCE_LENGTH = 22;
const HASH_LENGTH = 43;
/** Of a time in milliseconds, in base 36: enough for 3,000 years. */
const TIME_DIGITS = 9;
const TIME = /^[0-9a-z]{9}$/;

/**
 * Tokens of attempts that a claim may get. A token is a hash of a random nonce and the id of the claim: a worker that repeats
 * the claim gets the same token, on any node, and the database, which has only hashes of both, does not reveal it.
 *
 * With a time, the nonces, the tokens and their hashes begin with it. So the storage appends hashes to its index, and need not
 * write a page for each.
 */
export function newSecrets(claimId: string, count: number, time: number | null): AttemptSecret[] {
  const random = randomBytes(NONCE_BYTES * count);
  const prefix = time === null ? "" : time.toString(36).padStart(TIME_DIGITS, "0");
  return Array.from({ length: count }, (_, n) => {
    const nonce = prefix + random.toString("base64url", n * NONCE_BYTES, (n + 1) * NONCE_BYTES);
    return { nonce, hash: hashOfToken(tokenOf(nonce, claimId)) };
  });
}

/** The token of an attempt, as the worker gets it. */
export function tokenOf(nonce: string, claimId: string): string {
  return PREFIX + nonce.slice(0, -NONCE_LENGTH) + hash("sha256", `${nonce} ${claimId}`, "base64url");
}

/** Of any text: callers may send what is no token. */
export function hashOfToken(token: string): string {
  const hasLength = token.length === PREFIX.length + TIME_DIGITS + HASH_LENGTH;
  const start = hasLength ? token.slice(PREFIX.length, PREFIX.length + TIME_DIGITS) : "";
  return (TIME.test(start) ? start : "") + hash("sha256", token, "base64url");
}

export function hashOfClaim(claimId: string): string {
  return hash("sha256", `claim ${claimId}`, "base64url");
}
