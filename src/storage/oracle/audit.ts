import type { AuditEntry, ListAuditParams, NewAuditEntry } from "../storage.ts";
import type { OracleState } from "./state.ts";

export function appendAudit(state: OracleState, { entries }: { entries: readonly NewAuditEntry[] }): void {
  for (const { at, tenant, keyId, route, subject, subjectDigest } of entries) {
    state.lastAuditSeq += 1;
    state.audit.push({ seq: state.lastAuditSeq, at, tenant, keyId, route, subject, subjectDigest });
  }
}

export function listAudit(
  state: OracleState,
  { tenant, since, keyId, limit, cursor }: ListAuditParams,
): { entries: AuditEntry[]; nextCursor: number | null } {
  const all = [...state.audit].sort((a, b) => b.at - a.at || b.seq - a.seq);
  // What is older than what is gone is gone, too.
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
  const cutoff = state.clock.now() - retentionMs;
  const old = state.audit
    .filter(({ at }) => at < cutoff)
    .sort((a, b) => a.at - b.at || a.seq - b.seq)
    .slice(0, limit);
  const gone = new Set(old);
  state.audit = state.audit.filter((entry) => !gone.has(entry));
  return { more: old.length === limit };
}
