/** Agents that get a label of their own. Every label is a series for as long as the process lives. */
const AGENT_LABELS_MAX = 100;
/** Where all further agents are counted. */
export const OTHER_AGENTS = "other";

/** Ids are the callers' to choose, so that there may be any number of them: who comes first keeps its name. */
export class AgentLabels {
  readonly #named = new Set<string>();

  of(agent: string): string {
    if (this.#named.has(agent)) return agent;
    if (this.#named.size >= AGENT_LABELS_MAX || agent === OTHER_AGENTS) return OTHER_AGENTS;
    this.#named.add(agent);
    return agent;
  }
}
