import type { AgentName } from "../../engine/schedules/run-maker.ts";
import { echo } from "../../executors/echo.ts";
import type { Executor } from "../../executors/executor.ts";
import type { AgentInfo } from "../../interface/agents.ts";
import type { AgentOptions } from "../../interface/options.ts";
import { checkAgentId } from "../../model/agent-id.ts";
import type { RotaError } from "../../model/errors.ts";
import { DEFAULT_AGENT, NO_QUEUE_LIMIT } from "../../model/task.ts";
import type { TaskRecord } from "../../model/task-record.ts";
import type { Abilities } from "../../storage/storage.ts";
import type { CurrentSettings } from "../settings/current-settings.ts";
import { type Agent, type ExecutorDependencies, readAgent, UNDESCRIBED } from "./agent.ts";

export interface AgentTableOptions {
  readonly current: CurrentSettings;
  readonly surroundings: ExecutorDependencies;
  /** The ids of the keys with which this process decrypts stored agents. */
  readonly keyIds: readonly string[];
  /** An executor that does the same, and then, for that tenant, what the `/schedule` lines in its answer say. */
  readonly withWrits: (executor: Executor, tenant: string) => Executor;
  /** The same for an agent that may not: its answer says that nothing of it was done. */
  readonly withoutWrits: (executor: Executor) => Executor;
}

export interface KnownAgent {
  readonly agent: Agent;
  readonly source: AgentInfo["source"];
}

/** The agent that always exists, as long as nobody said anything of it. */
const BUILT_IN: KnownAgent = { agent: UNDESCRIBED, source: "built-in" };

const NONE: ReadonlyMap<string, Agent> = new Map();

/**
 * The agents this process knows, and who does their work. What the program says of an agent counts more than what the
 * configuration says, and that more than what is stored. Those of program and configuration serve all tenants; a stored
 * one is there for the tenant that it belongs to.
 */
export class AgentTable {
  readonly #options: AgentTableOptions;
  readonly #ofProgram = new Map<string, Agent>();
  /** By tenant, then by id. */
  readonly #stored = new Map<string, Map<string, Agent>>();

  constructor(options: AgentTableOptions) {
    this.#options = options;
  }

  /** What the program says of an agent. Throws `invalid_field` for what cannot be. */
  set(given: string, options: AgentOptions): void {
    const id = checkAgentId(given);
    const faults: RotaError[] = [];
    const { surroundings } = this.#options;
    const agent = readAgent(options, { ...surroundings, prefix: `agents.${id}.`, faults });
    const [fault] = faults;
    if (fault !== undefined) throw fault;
    this.#ofProgram.set(id, agent);
  }

  isOfProgram(id: string): boolean {
    return this.#ofProgram.has(id);
  }

  /** Those of a tenant in the catalogue. */
  storedOf(tenant: string): ReadonlyMap<string, Agent> {
    return this.#stored.get(tenant) ?? NONE;
  }

  /** One of the catalogue is as it is now. */
  putStored({ tenant, agent: id }: AgentName, agent: Agent): void {
    const ofTenant = this.#stored.get(tenant) ?? new Map<string, Agent>();
    this.#stored.set(tenant, ofTenant.set(id, agent));
  }

  /** One is in the catalogue no more. */
  dropStored({ tenant, agent: id }: AgentName): void {
    const ofTenant = this.#stored.get(tenant);
    ofTenant?.delete(id);
    if (ofTenant?.size === 0) this.#stored.delete(tenant);
  }

  find({ tenant, agent: id }: AgentName): KnownAgent | undefined {
    const agent = this.#ofProgram.get(id) ?? this.#options.current.value.agents.get(id);
    if (agent !== undefined) return { agent, source: "config" };
    const stored = this.#stored.get(tenant)?.get(id);
    if (stored !== undefined) return { agent: stored, source: "stored" };
    return id === DEFAULT_AGENT ? BUILT_IN : undefined;
  }

  /** The ids of all that a tenant has, sorted. */
  ids(tenant: string): string[] {
    return [...new Set([DEFAULT_AGENT, ...this.configuredIds(), ...this.storedOf(tenant).keys()])].sort();
  }

  /** The ids of those of the program and the configuration. */
  configuredIds(): string[] {
    return [...new Set([...this.#ofProgram.keys(), ...this.#options.current.value.agents.keys()])];
  }

  /** What this process can execute, stored agents aside: every node can execute the tasks of those. */
  abilities(): Abilities {
    const { agents, executors } = this.#options.current.value;
    const named = new Map([...agents, ...this.#ofProgram]);
    return {
      agents: new Map([...named].map(([id, { made }]) => [id, made !== undefined])),
      kinds: [...executors.keys()],
      keys: this.#options.keyIds,
    };
  }

  laneOf(name: AgentName): string | undefined {
    return this.find(name)?.agent.lane;
  }

  /** Null: no bound of its own. */
  maxInflight(name: AgentName): number | null {
    return this.find(name)?.agent.maxInflight ?? null;
  }

  /** Null: the limit for all agents holds. */
  maxQueued(name: AgentName): number | null {
    const own = this.find(name)?.agent.maxQueued ?? null;
    // `index` stands for "no agent named": it is not one agent that could take too much.
    return own ?? (name.agent === DEFAULT_AGENT ? NO_QUEUE_LIMIT : null);
  }

  /** How many tokens its model takes in at most; undefined: it does not say. */
  contextWindow(name: AgentName): number | undefined {
    return this.find(name)?.agent.contextWindow;
  }

  /** The agent's own, else that of the kind; the agent that always exists answers its input if it has neither. */
  executorFor(record: TaskRecord): Executor | undefined {
    const { tenant, agent, spec } = record;
    const known = this.find(record)?.agent;
    // What only adds a limit to a stored agent, say, leaves it its executor.
    const own = known?.made ?? this.#stored.get(tenant)?.get(agent)?.made;
    const made = own ?? this.#options.current.value.executors.get(spec.work.kind);
    const executor = made?.executor ?? (agent === DEFAULT_AGENT ? echo : undefined);
    if (executor === undefined) return undefined;
    const { withWrits, withoutWrits } = this.#options;
    return known?.writs ? withWrits(executor, tenant) : withoutWrits(executor);
  }
}
