import type { AgentRecord } from "../storage.ts";
import { abilitiesChanged } from "./abilities.ts";
import { preempt } from "./preempt-tasks.ts";
import { agentKey, copyJson, isSameAgent, type OracleState, tell } from "./state.ts";

interface AgentName {
  readonly tenant: string;
  readonly agent: string;
}

export function configureAgent(state: OracleState, params: AgentName & { maxInflight: number | null }): void {
  state.agentLimits.set(agentKey(params), params.maxInflight);
  const listed = state.catalogue.get(agentKey(params));
  if (listed !== undefined)
    state.catalogue.set(agentKey(params), { ...listed, maxInflight: params.maxInflight });
  makeRoom(state, params);
}

/** Other bounds hold: what the agent's tasks waited for may be there now, or gone. */
function makeRoom(state: OracleState, agent: AgentName): void {
  for (const line of state.lines) if (isSameAgent(line, agent)) state.shaken.add(line.lane);
  preempt(state);
  tell(state, { kind: "work" });
}

export function boundedAgents(state: OracleState): AgentName[] {
  const bounded = [...state.agentLimits].filter(
    ([key, bound]) => bound !== null && !state.catalogue.has(key),
  );
  return bounded
    .map(([key]) => key)
    .sort()
    .map((key) => {
      const [tenant, agent] = JSON.parse(key) as [string, string];
      return { tenant, agent };
    });
}

export function createAgent(state: OracleState, record: AgentRecord): boolean {
  return !state.catalogue.has(agentKey(record)) && save(state, record);
}

export function updateAgent(state: OracleState, record: AgentRecord): boolean {
  return state.catalogue.has(agentKey(record)) && save(state, record);
}

export function deleteAgent(state: OracleState, agent: AgentName): boolean {
  if (!state.catalogue.delete(agentKey(agent))) return false;
  state.agentLimits.delete(agentKey(agent));
  makeRoom(state, agent);
  abilitiesChanged(state);
  tell(state, { kind: "agents" });
  return true;
}

export function listAgents(state: OracleState): AgentRecord[] {
  const byName = [...state.catalogue].sort(([a], [b]) => (a < b ? -1 : 1));
  return byName.map(([, record]) => copyJson(record));
}

function save(state: OracleState, record: AgentRecord): true {
  state.catalogue.set(agentKey(record), copyJson(record));
  configureAgent(state, record);
  abilitiesChanged(state);
  tell(state, { kind: "agents" });
  return true;
}
