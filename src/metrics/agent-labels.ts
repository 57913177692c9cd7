/** Agents with a label of their own. Every label is a series for as long as the process lives. */
const AGENT_LABELS_MAX = 100;
/** The label of all further agents. */
export const OTHER_AGENTS = "other";

/** Callers choose agent ids, so there may be any number of them. The first ones get labels of their own. */
export class AgentLabels {
  readonly #named = new Set<string>();

  of(agent: string): string {
    if (this.#named.has(agent)) return agent;
    if (this.#named.size >= AGENT_LABELS_MAX || agent === OTHER_AGENTS) return OTHER_AGENTS;
    this.#named.add(agent);
    return agent;
  }
}
