import { createHash, randomBytes } from "node:crypto";
import type { AttemptSecret } from "../../storage/storage.ts";

const PREFIX = "att_";
const NONCE_BYTES = 16;

/**
 * Tokens of attempts that a claim may get. A token is a hash of a random nonce and the id of the claim: a worker that repeats
 * the claim gets the same token, on any node, and the database, which has only hashes of both, does not reveal it.
 */
export function newSecrets(claimId: string, count: number): AttemptSecret[] {
  return Array.from({ length: count }, () => {
    const nonce = randomBytes(NONCE_BYTES).toString("base64url");
    return { nonce, hash: hashOfToken(tokenOf(nonce, claimId)) };
  });
}

/** The token of an attempt, as the worker gets it. */
export function tokenOf(nonce: string, claimId: string): string {
  return PREFIX + createHash("sha256").update(`${nonce} ${claimId}`).digest("base64url");
}

export function hashOfToken(token: string): string {
  return createHash("sha256").update(token).digest("base64url");
}

export function hashOfClaim(claimId: string): string {
  return createHash("sha256").update(`claim ${claimId}`).digest("base64url");
}
