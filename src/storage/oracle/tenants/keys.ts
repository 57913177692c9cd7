import type { KeyRecord, NewKey } from "../../storage.ts";
import { copyJson, type OracleState, signal } from "../state.ts";

export function createKey(state: OracleState, key: NewKey): KeyRecord | null {
  if (state.tenants.get(key.tenant)?.deleting !== false) return null;
  const isTaken = state.apiKeys.some(({ id, hash }) => id === key.id || hash === key.hash);
  if (isTaken) throw new Error("The id and the hash of an API key are unique.");
  const { id, tenant, name, role, agent, agents = null, bounds = null, hash, expiresAt } = key;
  const now = state.clock.now();
  state.apiKeys.push({
    id,
    tenant,
    name,
    role,
    agent,
    agents,
    bounds: copyJson(bounds),
    hash,
    expiresAt,
    createdAt: now,
    lastUsedAt: null,
  });
  signal(state, { kind: "keys" });
  return findKeys(state, { hashes: [hash] })[0] ?? null;
}

export function findKeys(state: OracleState, { hashes }: { hashes: readonly string[] }): KeyRecord[] {
  return state.apiKeys.filter(({ hash }) => hashes.includes(hash)).map((key) => ({ ...key }));
}

export function getKey(state: OracleState, { tenant, id }: { tenant: string; id: string }): KeyRecord | null {
  return listKeys(state, { tenant }).find((key) => key.id === id) ?? null;
}

export function listKeys(state: OracleState, { tenant }: { tenant: string }): KeyRecord[] {
  return state.apiKeys
    .filter((key) => key.tenant === tenant)
    .sort((a, b) => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1))
    .map((key) => ({ ...key }));
}

export function anyKey(state: OracleState): boolean {
  return state.apiKeys.length > 0;
}

export function deleteKey(state: OracleState, { tenant, id }: { tenant: string; id: string }): boolean {
  const key = state.apiKeys.find((each) => each.tenant === tenant && each.id === id);
  if (key === undefined) return false;
  state.apiKeys = state.apiKeys.filter((each) => each !== key);
  signal(state, { kind: "keys" });
  return true;
}

export function touchKeys(
  state: OracleState,
  { uses }: { uses: readonly { readonly id: string; readonly at: number }[] },
): void {
  for (const { id, at } of uses) {
    const key = state.apiKeys.find((each) => each.id === id);
    if (key !== undefined) key.lastUsedAt = Math.max(key.lastUsedAt ?? at, at);
  }
}
