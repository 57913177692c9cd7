import type {
  AuditChainPoint,
  AuditEntry,
  AuditFacts,
  AuditLink,
  ListAuditParams,
  NewAuditEntry,
} from "../../storage.ts";
import { withoutMaker } from "../../without-maker.ts";
import type { OracleState } from "../state.ts";

export function appendAudit(state: OracleState, { entries }: { entries: readonly NewAuditEntry[] }): void {
  const taken = entries.some((entry) =>
    state.audit.some(({ chain, number }) => chain === entry.chain && number === entry.number),
  );
  if (taken) throw new Error("An entry of this number is in the chain already.");
  for (const entry of entries) {
    state.lastAuditSeq += 1;
    const isErased = state.tenants.get(entry.tenant)?.deleting !== false;
    state.audit.push({ ...(isErased ? withoutNames(entry) : entry), seq: state.lastAuditSeq });
  }
}

/** The entry without the names that callers chose. */
export function withoutNames<Entry extends AuditFacts>(entry: Entry): Entry {
  const { provenance } = entry;
  return {
    ...entry,
    ...(entry.subjectDigest === null ? {} : { subject: null, subjectSalt: null }),
    provenance: provenance === null ? null : withoutMaker(provenance),
  };
}

export function listAudit(
  state: OracleState,
  { tenant, since, keyId, limit, cursor }: ListAuditParams,
): { entries: AuditEntry[]; nextCursor: number | null } {
  const all = [...state.audit].sort((a, b) => b.at - a.at || b.seq - a.seq);
  // If the entry of the cursor is deleted, all older ones are, too.
  const start = cursor === undefined ? 0 : all.findIndex(({ seq }) => seq === cursor) + 1 || all.length;
  const found = all
    .slice(start)
    .filter((entry) => entry.tenant === tenant)
    .filter((entry) => since === undefined || entry.at >= since)
    .filter((entry) => keyId === undefined || entry.keyId === keyId);
  const entries = found.slice(0, limit).map((entry) => ({ ...entry }));
  return { entries, nextCursor: found.length > limit ? (entries.at(-1)?.seq ?? null) : null };
}

export function pruneAudit(
  state: OracleState,
  { retentionMs, limit }: { retentionMs: number; limit: number },
): { more: boolean } {
  const now = state.clock.now();
  const isOld = ({ at }: AuditEntry) => at < now - retentionMs || at > now + retentionMs;
  const gone = new Set<AuditEntry>();
  for (const chain of chainNames(state)) {
    const entries = chainOf(state, chain);
    const kept = entries.findIndex((entry) => !isOld(entry));
    for (const entry of kept === -1 ? entries : entries.slice(0, kept)) {
      if (gone.size === limit) break;
      gone.add(entry);
      state.auditAnchors.set(chain, { number: entry.number, hash: entry.hash });
    }
  }
  state.audit = state.audit.filter((entry) => !gone.has(entry));
  for (const chain of state.auditAnchors.keys()) {
    if (chainOf(state, chain).length === 0 && !state.nodes.has(chain)) {
      state.auditAnchors.delete(chain);
    }
  }
  return { more: gone.size === limit };
}

export function endOfChain(state: OracleState, { chain }: { chain: string }): AuditChainPoint | null {
  const last = chainOf(state, chain).at(-1);
  return last === undefined
    ? (state.auditAnchors.get(chain) ?? null)
    : { number: last.number, hash: last.hash };
}

export function nextChain(state: OracleState, { after }: { after: string }): string | null {
  return chainNames(state).find((name) => name > after) ?? null;
}

export function prunedOf(state: OracleState, { chain }: { chain: string }): AuditChainPoint | null {
  return state.auditAnchors.get(chain) ?? null;
}

export function readChain(
  state: OracleState,
  { chain, after, limit }: { chain: string; after: number; limit: number },
): AuditEntry[] {
  return chainOf(state, chain)
    .filter(({ number }) => number > after)
    .slice(0, limit)
    .map((entry) => ({ ...entry }));
}

function chainNames(state: OracleState): string[] {
  return [...new Set(state.audit.flatMap(({ chain }) => chain ?? []))].sort();
}

function chainOf(state: OracleState, chain: string): (AuditEntry & AuditLink)[] {
  const entries = state.audit.filter((entry) => entry.chain === chain) as (AuditEntry & AuditLink)[];
  return entries.sort((a, b) => a.number - b.number);
}
