import { hash, randomBytes } from "node:crypto";
import type { AttemptSecret } from "../../storage/storage.ts";

const PREFIX = "att_";
const NONCE_BYTES = 16;

/**
 * Tokens of attempts that a claim may get. A token is a hash of a random nonce and the id of the claim: a worker that repeats
 * the claim gets the same token, on any node, and the database, which has only hashes of both, does not reveal it.
 */
export function newSecrets(claimId: string, count: number): AttemptSecret[] {
  const random = randomBytes(NONCE_BYTES * count);
  return Array.from({ length: count }, (_, n) => {
    const nonce = random.toString("base64url", n * NONCE_BYTES, (n + 1) * NONCE_BYTES);
    return { nonce, hash: hashOfToken(tokenOf(nonce, claimId)) };
  });
}

/** The token of an attempt, as the worker gets it. */
export function tokenOf(nonce: string, claimId: string): string {
  return PREFIX + hash("sha256", `${nonce} ${claimId}`, "base64url");
}

export function hashOfToken(token: string): string {
  return hash("sha256", token, "base64url");
}

export function hashOfClaim(claimId: string): string {
  return hash("sha256", `claim ${claimId}`, "base64url");
}
