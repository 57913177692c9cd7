import type { ExecutorConfig } from "../executors/executor.ts";

/**
 * The catalogue of agents: those of the configuration, which only the configuration changes, and those made here,
 * which are stored and known to all nodes. `index` is always there. A task may name an agent that is not listed.
 */
export interface Agents {
  /** Throws `invalid_field`, and `conflict` when there is one of that id. */
  create(input: AgentInput): Promise<AgentInfo>;
  /** A page, by id. Throws `invalid_field`. */
  list(page?: AgentPageInput): Promise<AgentList>;
  /** Throws `not_found`. */
  get(id: string): Promise<AgentInfo>;
  /** What is left out stays, null takes it away. Throws `not_found`, and `conflict` for one of the configuration. */
  update(id: string, changes: AgentChanges): Promise<AgentInfo>;
  /** Its tasks stay, and are those of an agent that is not listed. Throws as `update`. */
  delete(id: string): Promise<{ readonly deleted: true }>;
}

export interface AgentInput {
  readonly id: string;
  /** Does its work; left out: the executor of the task's kind does. */
  readonly executor?: ExecutorConfig;
  /** Where its tasks run when they do not say. */
  readonly lane?: string;
  /** How many of its tasks run at once, over all lanes and nodes; left out: no bound of its own. */
  readonly maxInflight?: number;
  /** How many of its tasks may wait, in place of `scheduler.maxPerAgent`. */
  readonly maxQueued?: number;
  /** How many tokens its model takes in at most: a session's, unless an answer names another, and what history must fit into. */
  readonly contextWindow?: number;
  /** Whether `/schedule` lines in its answers are carried out. */
  readonly writs?: boolean;
}

export type AgentChanges = {
  readonly [Field in Exclude<keyof AgentInput, "id">]?: AgentInput[Field] | null;
};

export interface AgentInfo extends AgentInput {
  /** Where it comes from: the configuration (or the program, with a handler), `/v1/agents`, or Rota itself. */
  readonly source: "config" | "stored" | "built-in";
}

export interface AgentPageInput {
  /** 1 to 1000; 1000 unless given. */
  readonly limit?: number;
  /** The `nextCursor` of the page before. */
  readonly cursor?: string;
}

export interface AgentList {
  readonly agents: readonly AgentInfo[];
  /** Of this page. */
  readonly count: number;
  /** Where the next page begins; null on the last one. */
  readonly nextCursor: string | null;
}
