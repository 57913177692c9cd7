import { createHash } from "node:crypto";
import type { AuditChainPoint, AuditFacts, AuditLink, NewAuditEntry } from "../storage/storage.ts";
import { withoutMaker } from "../storage/without-maker.ts";

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
  const { at, tenant, keyId, route, subject, subjectDigest, address, status, count, provenance } = facts;
  const { chain, number, previousHash } = link;
  const named = subjectDigest === null ? subject : null;
  const parts = [chain, number, previousHash, at, tenant, keyId, route, named, subjectDigest];
  // The names of the agent and the client are erased with their tenant. Entries without a provenance have the hash that versions
  // without this field gave them.
  const who = provenance === null ? [] : [withoutMaker(provenance)];
  return sha256(JSON.stringify([...parts, address, status, count, ...who]));
}

/** The digest that stays in the log when the name and the salt are erased with their tenant. */
export function digestOf(subject: string, salt: string | null): string {
  return sha256((salt ?? "") + subject);
}

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("base64url");
}
