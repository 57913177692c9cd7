import type { ExecutorConfig } from "../executors/executor.ts";

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

export interface AgentInput {
  readonly id: string;
  /** Executes its tasks; left out: the executor of the task's kind does. */
  readonly executor?: ExecutorConfig;
  /** The lane of its tasks that name none. */
  readonly lane?: string;
  /** How many of its tasks run at once, over all lanes and nodes; left out: no limit of its own. */
  readonly maxInflight?: number;
  /** How many of its tasks may wait, in place of `scheduler.maxPerAgent`. */
  readonly maxQueued?: number;
  /**
   * The context window of its model in tokens. Sessions use it unless a result reports another, and history must fit into it.
   */
  readonly contextWindow?: number;
  /** Whether Rota carries out `/schedule` lines in its results. */
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
