import { agentKey } from "../../../model/agent.ts";
import { isTerminal } from "../../../model/task-state.ts";
import { DEFAULT_TENANT } from "../../../model/tenant.ts";
import {
  type CreatedTenant,
  type DeletedTenant,
  type NewTenant,
  TASK_OVERHEAD_BYTES,
  type TenantLimits,
  type TenantRecord,
  type UpdatedTenant,
} from "../../storage.ts";
import { withoutNames } from "../log/audit.ts";
import { refreshTurns } from "../log/receivers.ts";
import { copyJson, type Mutable, type OracleState, signal } from "../state.ts";
import { cancelThese } from "../tasks/cancel-tasks.ts";
import { preempt } from "../tasks/preempt-tasks.ts";
import { remove } from "../tasks/prune.ts";
import { hasSecondEnabledTenant } from "../tasks/room.ts";
import { recordChange } from "./agents.ts";

export function createTenant(state: OracleState, { id, name, limits }: NewTenant): CreatedTenant {
  if (state.tenants.has(id)) return { taken: "id" };
  if (isNameTaken(state, { id, name })) return { taken: "name" };
  const now = state.clock.now();
  const wereShared = hasSecondEnabledTenant(state);
  state.tenants.set(id, {
    id,
    name,
    disabled: false,
    deleting: false,
    limits: { ...limits },
    storedBytes: null,
    createdAt: now,
    updatedAt: now,
  });
  sharesMayChange(state, wereShared);
  changed(state, id);
  return { taken: null, tenant: recordOf(state, id) };
}

export function getTenant(state: OracleState, { id }: { id: string }): TenantRecord | null {
  return state.tenants.has(id) ? recordOf(state, id) : null;
}

export function listTenants(state: OracleState): TenantRecord[] {
  return [...state.tenants.keys()].sort().map((id) => recordOf(state, id));
}

export function updateTenant(
  state: OracleState,
  { id, name, limits }: { id: string; name?: string; limits?: Partial<TenantLimits> },
): UpdatedTenant {
  const tenant = state.tenants.get(id);
  if (tenant === undefined || tenant.deleting) return { found: false };
  if (name !== undefined && isNameTaken(state, { id, name })) return { found: true, taken: "name" };
  tenant.name = name ?? tenant.name;
  tenant.limits = { ...tenant.limits, ...limits };
  tenant.updatedAt = state.clock.now();
  changed(state, id);
  return { found: true, taken: null, tenant: recordOf(state, id) };
}

export function setTenantDisabled(
  state: OracleState,
  { id, disabled }: { id: string; disabled: boolean },
): TenantRecord | null {
  const tenant = state.tenants.get(id);
  if (tenant === undefined || tenant.deleting) return null;
  return recordOf(state, disable(state, tenant, disabled));
}

/** Returns its id. */
function disable(state: OracleState, tenant: Mutable<TenantRecord>, disabled: boolean): string {
  const { id } = tenant;
  const wereShared = hasSecondEnabledTenant(state);
  tenant.disabled = disabled;
  tenant.updatedAt = state.clock.now();
  sharesMayChange(state, wereShared);
  changed(state, id);
  return id;
}

export function deleteTenant(
  state: OracleState,
  { id, limit }: { id: string; limit: number },
): DeletedTenant {
  const tenant = state.tenants.get(id);
  if (tenant === undefined) return { found: false };
  if (id === DEFAULT_TENANT) return { found: true, was: "default" };
  disable(state, tenant, true);
  tenant.deleting = true;
  state.apiKeys = state.apiKeys.filter(({ tenant }) => tenant !== id);
  signal(state, { kind: "keys" });
  const more = deleteSlice(state, id, limit);
  if (!more) forget(state, id);
  return { found: true, was: null, more };
}

/** Deletes a slice of a tenant's data. Returns whether some is left. */
function deleteSlice(state: OracleState, id: string, limit: number): boolean {
  const isOwn = ({ tenant }: { tenant: string }) => tenant === id;
  const tasks = state.tasks.filter(isOwn).slice(0, limit);
  const open = tasks.filter((task) => !isTerminal(task.state));
  cancelThese(state, open, "tenant deleted");
  remove(state, tasks);
  if (tasks.length === limit) return true;
  const owned = ["sessions", "schedules", "runs", "notifications", "bulks", "rollups"] as const;
  if (owned.some((kind) => deleteOwn(state, kind, isOwn, limit) === limit)) return true;
  state.audit = state.audit.map((entry) => (isOwn(entry) ? withoutNames(entry) : entry));
  state.boundedTasks = state.boundedTasks.filter((each) => !isOwn(each));
  state.boundedSubmits = state.boundedSubmits.filter((each) => !isOwn(each));
  return false;
}

function deleteOwn<Kind extends "sessions" | "schedules" | "runs" | "notifications" | "bulks" | "rollups">(
  state: { [K in Kind]: readonly { readonly tenant: string }[] },
  kind: Kind,
  isOwn: (row: { tenant: string }) => boolean,
  limit: number,
): number {
  const gone = new Set(state[kind].filter(isOwn).slice(0, limit));
  state[kind] = state[kind].filter((row) => !gone.has(row));
  return gone.size;
}

function forget(state: OracleState, id: string): void {
  const isOwn = (key: string) => key.startsWith(agentKey({ tenant: id, agent: "" }));
  for (const key of state.agentLimits.keys()) if (isOwn(key)) state.agentLimits.delete(key);
  for (const key of state.catalogue.keys()) {
    if (!isOwn(key)) continue;
    state.catalogue.delete(key);
  }
  state.agentChanges = state.agentChanges.filter(({ key }) => !isOwn(key));
  recordChange(state, agentKey({ tenant: id, agent: "" }));
  state.receivers = state.receivers.filter(({ tenant }) => tenant !== id);
  state.deliveryTurns = state.deliveryTurns.filter(({ tenant }) => tenant !== id);
  for (const worker of [...state.workers.values()]) if (worker.tenant === id) state.workers.delete(worker.id);
  for (const key of state.workerAgentsSeen.keys()) if (isOwn(key)) state.workerAgentsSeen.delete(key);
  state.workerAttempts = state.workerAttempts.filter(({ tenant }) => tenant !== id);
  state.webhookSecrets.delete(id);
  // The number, the type and the time of its events are kept.
  state.events = state.events.map((event) =>
    event.tenant === id ? { ...event, tenant: "", data: null } : event,
  );
  state.tenants.delete(id);
  signal(state, { kind: "tenants" }, { kind: "agents" });
}

function isNameTaken(state: OracleState, { id, name }: { id: string; name: string }): boolean {
  return [...state.tenants.values()].some((other) => other.id !== id && other.name === name);
}

/** If limits by share begin or end to apply, every lane has to be rechecked. */
function sharesMayChange(state: OracleState, wereShared: boolean): void {
  if (hasSecondEnabledTenant(state) === wereShared) return;
  for (const lane of state.lanes.keys()) state.lanesToRecheck.add(lane);
}

/** The limits have changed: the tenant's tasks may have got or lost the room that they waited for. */
function changed(state: OracleState, id: string): void {
  for (const tenantQueue of state.tenantQueues)
    if (tenantQueue.tenant === id) state.lanesToRecheck.add(tenantQueue.lane);
  preempt(state);
  refreshTurns(state, id);
  signal(state, { kind: "tenants" }, { kind: "work" }, { kind: "deliveries" });
}

function recordOf(state: OracleState, id: string): TenantRecord {
  const tenant = state.tenants.get(id);
  if (tenant === undefined) throw new Error(`There is no tenant ${id}.`);
  const isCounted = tenant.limits.maxStoredBytes !== null;
  return { ...copyJson(tenant), storedBytes: isCounted ? storedBytes(state, id) : null };
}

function storedBytes(state: OracleState, tenant: string): number {
  const own = state.tasks.filter((task) => task.tenant === tenant);
  return own.reduce(
    (sum, { spec, result, error }) =>
      sum +
      TASK_OVERHEAD_BYTES +
      Buffer.byteLength(JSON.stringify(spec)) +
      Buffer.byteLength(result === undefined ? "" : JSON.stringify(result)) +
      Buffer.byteLength(error ?? ""),
    0,
  );
}

/** Bytes are counted on every read, so there is nothing to prepare. */
export function countStored(): { readonly more: boolean } {
  return { more: false };
}
