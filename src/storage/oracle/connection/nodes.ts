import type { Abilities, Held, NodeDetails, NodeRecord, Slots } from "../../storage.ts";
import type { OracleState } from "../state.ts";
import { preempt } from "../tasks/preempt-tasks.ts";
import { endMemory, rememberAgents } from "./abilities.ts";
import { abilitiesChanged } from "./abilities-changed.ts";

export function registerNode(
  state: OracleState,
  {
    node,
    version = null,
    slots = {},
    perTenant = {},
    abilities = null,
  }: {
    node: string;
    version?: string | null;
    slots?: Slots;
    perTenant?: Slots;
    abilities?: Abilities | null;
  },
): void {
  const now = state.clock.now();
  const life = { beat: 0, dead: false, draining: false, startedAt: now, seenAt: now };
  state.nodes.set(node, { node, version, ...life, slots, perTenant, abilities });
  endMemory(state, abilities);
  abilitiesChanged(state);
}

export function setNodeAbilities(
  state: OracleState,
  { node, abilities }: { node: string; abilities: Abilities },
): void {
  const record = state.nodes.get(node);
  if (record === undefined || record.dead) return;
  const before = record.abilities;
  record.abilities = abilities;
  rememberAgents(state, before);
  endMemory(state, abilities);
  abilitiesChanged(state);
}

export function setNodeSlots(
  state: OracleState,
  {
    node,
    slots,
    perTenant = {},
    draining = false,
  }: { node: string; slots: Slots; perTenant?: Slots; draining?: boolean },
): void {
  const record = state.nodes.get(node);
  if (record === undefined) return;
  for (const lane of Object.keys(record.slots)) state.lanesToRecheck.add(lane);
  record.slots = slots;
  record.perTenant = perTenant;
  record.draining = draining;
  preempt(state);
}

export function heartbeat(state: OracleState, { node }: { node: string }): { alive: boolean; held: Held[] } {
  const record = state.nodes.get(node);
  if (record === undefined || record.dead) return { alive: false, held: [] };
  record.beat += 1;
  record.seenAt = state.clock.now();
  return { alive: true, held: heldBy(state, node) };
}

export function listNodes(state: OracleState): NodeRecord[] {
  return [...state.nodes.values()].map(({ node, beat, dead }) => ({ node, beat, dead }));
}

export function nodeDetails(state: OracleState): NodeDetails[] {
  const nodes = [...state.nodes.values()].sort((a, b) => (a.node < b.node ? -1 : 1));
  return nodes.map(({ node, version, startedAt, seenAt, dead, draining, slots }) => {
    const held = state.tasks.filter((task) => task.held?.node === node);
    const names = [...new Set([...Object.keys(slots), ...held.map(({ lane }) => lane)])].sort();
    const lanes = names.map((lane) => ({
      lane,
      slots: slots[lane] ?? 0,
      running: held.filter((task) => task.lane === lane && task.state === "running").length,
    }));
    return {
      node,
      version,
      startedAt,
      seenAt,
      dead,
      draining,
      lanes: lanes.filter((lane) => lane.slots + lane.running > 0),
    };
  });
}

/** A node that has renewed its lease since the caller read `beat` is alive, whatever the caller concluded. */
export function markNodeDead(state: OracleState, { node, beat }: { node: string; beat: number }): boolean {
  const record = state.nodes.get(node);
  if (record === undefined || record.dead || record.beat !== beat) return false;
  record.dead = true;
  rememberAgents(state, record.abilities);
  for (const lane of Object.keys(record.slots)) state.lanesToRecheck.add(lane);
  abilitiesChanged(state);
  return true;
}

export function removeNode(state: OracleState, { node }: { node: string }): void {
  if (state.nodes.get(node)?.dead && heldBy(state, node).length === 0) state.nodes.delete(node);
}

function heldBy(state: OracleState, node: string): Held[] {
  return state.tasks.flatMap(({ seq, held }) => (held?.node === node ? [{ seq, token: held.token }] : []));
}
