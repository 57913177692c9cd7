import type { AuditChainPoint, AuditEntry, AuditLink, Storage } from "../storage/storage.ts";
import { CHAIN_START, digestOf, hashOf } from "./audit-chain.ts";

const SLICE = 500;

export interface CheckedChains {
  readonly chains: number;
  readonly entries: number;
  /** The first faulty entry of each chain. */
  readonly findings: readonly string[];
}

/** Follows every chain of the audit log from its start, or from where older entries were deleted, to its end. */
export async function checkAuditChains(
  storage: Storage,
  onSlice: (entries: number) => Promise<void>,
): Promise<CheckedChains> {
  // Only the names of deleted tenants are erased.
  const isThere = async (id: string) => (await storage.tenants.get({ id }))?.deleting === false;
  const { audit } = storage;
  const findings: string[] = [];
  let [chains, entries] = [0, 0];
  const check = (chain: string, from: AuditChainPoint | null) =>
    checkChain({ storage, isThere, chain, from: from ?? CHAIN_START }, async (more) => {
      entries += more;
      await onSlice(entries);
    });
  for (let chain = await audit.nextChain({ after: "" }); chain !== null; ) {
    chains += 1;
    const pruned = await audit.prunedOf({ chain });
    let finding = await check(chain, pruned);
    // Its oldest entries may have reached their retention and been deleted just now: then it is checked from its new start.
    const now = finding === null ? pruned : await audit.prunedOf({ chain });
    if (now?.number !== pruned?.number) finding = await check(chain, now);
    if (finding !== null) findings.push(finding);
    chain = await audit.nextChain({ after: chain });
  }
  return { chains, entries, findings };
}

interface Params {
  readonly storage: Storage;
  readonly isThere: (tenant: string) => Promise<boolean>;
  readonly chain: string;
  /** The last entry before the stored ones. */
  readonly from: AuditChainPoint;
}

async function checkChain(
  { storage, isThere, chain, from }: Params,
  onSlice: (entries: number) => Promise<void>,
): Promise<string | null> {
  let last = from;
  for (;;) {
    const slice = await storage.audit.readChain({ chain, after: last.number, limit: SLICE });
    for (const entry of slice as (AuditEntry & AuditLink)[]) {
      const fault = faultOf(entry, last) ?? ((await isErasedFor(entry, isThere)) ? ERASED : null);
      if (fault !== null) return `Entry ${entry.number} of node ${chain} (seq ${entry.seq}): ${fault}`;
      last = entry;
    }
    await onSlice(slice.length);
    if (slice.length < SLICE) return null;
  }
}

const ERASED = "its subject was erased, though its tenant was not deleted.";

function faultOf(entry: AuditEntry & AuditLink, last: AuditChainPoint): string | null {
  const missing = entry.number - last.number - 1;
  if (missing > 0)
    return missing === 1 ? "the entry before it is missing." : `${missing} entries before it are missing.`;
  if (entry.previousHash !== last.hash)
    return "the entry before it is not the one that it was written after.";
  if (entry.hash !== hashOf(entry, entry)) return "it was changed after it was written.";
  const { subject, subjectDigest, subjectSalt } = entry;
  if (subject === null || subjectDigest === null || digestOf(subject, subjectSalt) === subjectDigest)
    return null;
  return "its subject was changed after it was written.";
}

async function isErasedFor(
  { subject, subjectDigest, tenant }: AuditEntry,
  isThere: Params["isThere"],
): Promise<boolean> {
  return subject === null && subjectDigest !== null && (await isThere(tenant));
}
