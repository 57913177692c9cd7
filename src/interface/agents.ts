import type { AGENT, AGENT_CHANGES, AGENT_PAGE } from "../model/input/agent-schema.ts";
import type { ChangesOf, InputOf } from "../model/input/schema.ts";

/**
 * The agents: those of the configuration, which only the configuration can change, and those created here, which are stored
 * and known to all nodes. `index` always exists. A task may name an agent that is not listed.
 */
export interface Agents {
  /** Throws `invalid_field`, and `conflict` if an agent with this id exists. */
  create(input: AgentInput): Promise<AgentInfo>;
  /** A page, by id. Throws `invalid_field`. */
  list(page?: AgentPageInput): Promise<AgentList>;
  /** Throws `not_found`. */
  get(id: string): Promise<AgentInfo>;
  /** A field that is left out stays, null removes it. Throws `not_found`, and `conflict` for an agent of the configuration. */
  update(id: string, changes: AgentChanges): Promise<AgentInfo>;
  /** Keeps its tasks; their agent is then no longer listed. Throws as `update`. */
  delete(id: string): Promise<{ readonly deleted: true }>;
}

export type AgentInput = InputOf<typeof AGENT.fields>;

export type AgentChanges = ChangesOf<typeof AGENT_CHANGES.fields>;

export interface AgentInfo extends AgentInput {
  /** Where it comes from: the configuration (or the program, with a handler), `/v1/agents`, or Rota itself. */
  readonly source: "config" | "stored" | "built-in";
}

export type AgentPageInput = InputOf<typeof AGENT_PAGE.fields>;

export interface AgentList {
  readonly agents: readonly AgentInfo[];
  /** Of this page. */
  readonly count: number;
  /** Where the next page begins; null on the last one. */
  readonly nextCursor: string | null;
}
