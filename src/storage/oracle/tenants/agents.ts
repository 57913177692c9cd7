import { type AgentName, agentKey, agentOfKey } from "../../../model/agent.ts";
import { AGENT_CHANGES_KEPT, type AgentRecord, type CatalogueChanges } from "../../storage.ts";
import { abilitiesChanged } from "../connection/abilities-changed.ts";
import { copyJson, isSameAgent, type OracleState, signal } from "../state.ts";
import { preempt } from "../tasks/preempt-tasks.ts";

export function configureAgent(state: OracleState, params: AgentName & { maxInflight: number | null }): void {
  state.agentLimits.set(agentKey(params), params.maxInflight);
  const listed = state.catalogue.get(agentKey(params));
  if (listed !== undefined)
    state.catalogue.set(agentKey(params), { ...listed, maxInflight: params.maxInflight });
  makeRoom(state, params);
}

/** The limits have changed: the agent's tasks may have got or lost the room that they waited for. */
function makeRoom(state: OracleState, agent: AgentName): void {
  for (const agentQueue of state.agentQueues)
    if (isSameAgent(agentQueue, agent)) state.lanesToRecheck.add(agentQueue.lane);
  preempt(state);
  signal(state, { kind: "work" });
}

export function boundedAgents(state: OracleState): AgentName[] {
  const bounded = [...state.agentLimits].filter(
    ([key, bound]) => bound !== null && !state.catalogue.has(key),
  );
  return bounded.map(([key]) => agentOfKey(key)).sort(byName);
}

export function createAgent(state: OracleState, record: AgentRecord): boolean {
  return !state.catalogue.has(agentKey(record)) && save(state, record);
}

export function updateAgent(state: OracleState, record: AgentRecord): boolean {
  return state.catalogue.has(agentKey(record)) && save(state, record);
}

export function deleteAgent(state: OracleState, agent: AgentName): boolean {
  if (!state.catalogue.delete(agentKey(agent))) return false;
  recordChange(state, agentKey(agent));
  state.agentLimits.delete(agentKey(agent));
  makeRoom(state, agent);
  abilitiesChanged(state);
  signal(state, { kind: "agents" });
  return true;
}

export function listAgents(state: OracleState): AgentRecord[] {
  return [...state.catalogue.values()].sort(byName).map(copyJson);
}

/** Keeps one change for each agent, the last. */
export function recordChange(state: OracleState, key: string): void {
  state.lastAgentChange += 1;
  const { lastAgentChange: seq } = state;
  state.agentChanges = state.agentChanges.filter(
    (change) => change.key !== key && change.seq > seq - AGENT_CHANGES_KEPT,
  );
  state.agentChanges.push({ seq, key });
}

export function agentChanges(
  state: OracleState,
  { since, limit }: { since: number | null; limit: number },
): CatalogueChanges {
  const { lastAgentChange: last } = state;
  if (since === null || since > last || since < last - AGENT_CHANGES_KEPT) {
    return { whole: true, agents: listAgents(state), gone: [], goneTenants: [], last, more: false };
  }
  const changes = state.agentChanges.filter(({ seq }) => seq > since).slice(0, limit);
  const found = changes.map(({ key }) => ({ key, record: state.catalogue.get(key) }));
  return {
    whole: false,
    agents: found.flatMap(({ record }) => (record === undefined ? [] : [copyJson(record)])),
    gone: found
      .filter(({ record }) => record === undefined)
      .map(({ key }) => agentOfKey(key))
      .filter(isNamed),
    goneTenants: found
      .map(({ key }) => agentOfKey(key))
      .filter((name) => !isNamed(name))
      .map(({ tenant }) => tenant),
    last: changes.at(-1)?.seq ?? since,
    more: changes.length === limit,
  };
}

function byName(a: AgentName, b: AgentName): number {
  if (a.tenant !== b.tenant) return a.tenant < b.tenant ? -1 : 1;
  return a.agent < b.agent ? -1 : 1;
}

function save(state: OracleState, record: AgentRecord): true {
  const before = state.catalogue.get(agentKey(record));
  state.catalogue.set(agentKey(record), copyJson(record));
  if (JSON.stringify(before?.definition) !== JSON.stringify(record.definition)) {
    recordChange(state, agentKey(record));
  }
  configureAgent(state, record);
  abilitiesChanged(state);
  signal(state, { kind: "agents" });
  return true;
}

/** A deleted tenant leaves one change, of an agent without a name. */
function isNamed({ agent }: AgentName): boolean {
  return agent !== "";
}
