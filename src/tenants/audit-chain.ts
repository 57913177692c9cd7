import { createHash } from "node:crypto";
import type { AuditChainPoint, AuditFacts, AuditLink, NewAuditEntry } from "../storage/storage.ts";

/** Before the first entry of a chain. */
export const CHAIN_START: AuditChainPoint = { number: 0, hash: "" };

/** The entries linked to the last one of a chain. */
export function linked(
  facts: readonly AuditFacts[],
  chain: string,
  end: AuditChainPoint,
): readonly NewAuditEntry[] {
  let last = end;
  return facts.map((each) => {
    const link = { chain, number: last.number + 1, previousHash: last.hash };
    const entry = { ...each, ...link, hash: hashOf(each, link) };
    last = entry;
    return entry;
  });
}

/** The hash over the whole entry. A subject that may be erased is represented by its digest. */
export function hashOf(facts: AuditFacts, link: Omit<AuditLink, "hash">): string {
  const { at, tenant, keyId, route, subject, subjectDigest, address, status, count } = facts;
  const { chain, number, previousHash } = link;
  const named = subjectDigest === null ? subject : null;
  const parts = [chain, number, previousHash, at, tenant, keyId, route, named, subjectDigest];
  return sha256(JSON.stringify([...parts, address, status, count]));
}

/** The digest that stays in the log when the name and the salt are erased with their tenant. */
export function digestOf(subject: string, salt: string | null): string {
  return sha256((salt ?? "") + subject);
}

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("base64url");
}
