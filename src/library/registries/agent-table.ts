import { echo } from "../../executors/echo.ts";
import type { Executor, ExecutorContext } from "../../executors/executor.ts";
import type { AgentInfo } from "../../interface/agents.ts";
import type { AgentOptions } from "../../interface/options.ts";
import { type AgentName, checkAgentId, DEFAULT_AGENT, NO_QUEUE_LIMIT } from "../../model/agent.ts";
import type { RotaError } from "../../model/errors.ts";
import type { Log } from "../../model/log.ts";
import { type TaskRecord, toExecutorTask } from "../../model/task-record.ts";
import type { Abilities } from "../../storage/storage.ts";
import { writsInAnswer } from "../resources/answer-writs.ts";
import type { CurrentSettings } from "../settings/current-settings.ts";
import { type Agent, type ExecutorDependencies, type MadeExecutor, readAgent, UNDESCRIBED } from "./agent.ts";

export interface AgentTableOptions {
  readonly current: CurrentSettings;
  readonly executorDependencies: ExecutorDependencies;
  /** The ids of the keys with which this process decrypts stored agents. */
  readonly keyIds: readonly string[];
  /** Wraps an executor: carries out the `/schedule` lines in its result, for that tenant. */
  readonly withWrits: (executor: Executor, tenant: string) => Executor;
  /** The same for an agent without `writs`: adds to the result that its lines were not carried out. */
  readonly withoutWrits: (executor: Executor) => Executor;
  /** Wraps an executor: adds the result of this task to the session that the task names. */
  readonly posting: (executor: Executor, record: TaskRecord) => Executor;
  readonly log: Log;
}

export interface KnownAgent {
  readonly agent: Agent;
  readonly source: AgentInfo["source"];
}

/** The agent that always exists, as long as nothing describes it. */
const BUILT_IN: KnownAgent = { agent: UNDESCRIBED, source: "built-in" };

const NONE: ReadonlyMap<string, Agent> = new Map();

/**
 * The agents that this process knows, and their executors. The program overrides the configuration, and the configuration
 * overrides stored agents. Agents of the program and the configuration serve all tenants; a stored agent serves only its own
 * tenant.
 */
export class AgentTable {
  readonly #options: AgentTableOptions;
  readonly #ofProgram = new Map<string, Agent>();
  /** By tenant, then by id. */
  readonly #stored = new Map<string, Map<string, Agent>>();
  #version = 0;
  /** The agents of the configuration at that version. */
  #configured: ReadonlyMap<string, Agent> | null = null;

  constructor(options: AgentTableOptions) {
    this.#options = options;
  }

  /** Sets an agent of the program. Throws `invalid_field`. */
  set(given: string, options: AgentOptions): void {
    const id = checkAgentId(given);
    const faults: RotaError[] = [];
    const { executorDependencies } = this.#options;
    const agent = readAgent(options, { ...executorDependencies, prefix: `agents.${id}.`, faults });
    const [fault] = faults;
    if (fault !== undefined) throw fault;
    this.#ofProgram.set(id, agent);
    this.#version += 1;
  }

  /** Another number whenever an agent has changed. */
  get version(): number {
    const { agents } = this.#options.current.value;
    if (this.#configured !== agents) this.#version += 1;
    this.#configured = agents;
    return this.#version;
  }

  isOfProgram(id: string): boolean {
    return this.#ofProgram.has(id);
  }

  /** The stored agents of a tenant. */
  storedOf(tenant: string): ReadonlyMap<string, Agent> {
    return this.#stored.get(tenant) ?? NONE;
  }

  /** A stored agent was created or changed. */
  putStored({ tenant, agent: id }: AgentName, agent: Agent): void {
    const ofTenant = this.#stored.get(tenant) ?? new Map<string, Agent>();
    this.#stored.set(tenant, ofTenant.set(id, agent));
    this.#version += 1;
  }

  /** A stored agent was deleted. */
  dropStored({ tenant, agent: id }: AgentName): void {
    const ofTenant = this.#stored.get(tenant);
    ofTenant?.delete(id);
    this.#version += 1;
    if (ofTenant?.size === 0) this.#stored.delete(tenant);
  }

  find({ tenant, agent: id }: AgentName): KnownAgent | undefined {
    const agent = this.#ofProgram.get(id) ?? this.#options.current.value.agents.get(id);
    if (agent !== undefined) return { agent, source: "config" };
    const stored = this.#stored.get(tenant)?.get(id);
    if (stored !== undefined) return { agent: stored, source: "stored" };
    return id === DEFAULT_AGENT ? BUILT_IN : undefined;
  }

  /** The ids of all agents of a tenant, sorted. */
  ids(tenant: string): string[] {
    return [...new Set([DEFAULT_AGENT, ...this.configuredIds(), ...this.storedOf(tenant).keys()])].sort();
  }

  /** The ids of agents of the program and the configuration. */
  configuredIds(): string[] {
    return [...new Set([...this.#ofProgram.keys(), ...this.#options.current.value.agents.keys()])];
  }

  /** What this process can execute, without stored agents, whose tasks every node can execute. */
  abilities(): Abilities {
    const { agents, executors } = this.#options.current.value;
    const named = [...new Map([...agents, ...this.#ofProgram])];
    const ofWorkers = named.filter(([, { made }]) => isForWorkers(made)).map(([id]) => id);
    return {
      agents: new Map(
        named.filter(([id]) => !ofWorkers.includes(id)).map(([id, { made }]) => [id, made !== undefined]),
      ),
      kinds: [...executors.keys()],
      keys: this.#options.keyIds,
      ...(ofWorkers.length === 0 ? {} : { workerAgents: ofWorkers }),
    };
  }

  laneOf(name: AgentName): string | undefined {
    return this.find(name)?.agent.lane;
  }

  /** Null: it has no limit of its own. */
  maxInflight(name: AgentName): number | null {
    return this.find(name)?.agent.maxInflight ?? null;
  }

  /** Null: the limit for all agents applies. */
  maxQueued(name: AgentName): number | null {
    const own = this.find(name)?.agent.maxQueued ?? null;
    // Tasks that name no agent go to `index`: the limit that protects against one agent does not fit it.
    return own ?? (name.agent === DEFAULT_AGENT ? NO_QUEUE_LIMIT : null);
  }

  /** The context window of its model in tokens; undefined: not set. */
  contextWindow(name: AgentName): number | undefined {
    return this.find(name)?.agent.contextWindow;
  }

  /** Whether it may schedule work. */
  hasWrits(name: AgentName): boolean {
    return this.find(name)?.agent.writs === true;
  }

  /** The executor that runs an agent in this process or on any node, for people; null: none, or workers do. */
  executorName(name: AgentName): string | null {
    const own = this.find(name)?.agent.made ?? this.#stored.get(name.tenant)?.get(name.agent)?.made;
    if (own !== undefined) return isForWorkers(own) ? null : nameOf(own);
    if (name.agent === DEFAULT_AGENT) return "`echo`, which is built in for this agent";
    const [kind] = this.#options.current.value.executors;
    return kind === undefined ? null : `${nameOf(kind[1])} by \`executors.${kind[0]}\``;
  }

  /**
   * Carries out what the result of a worker asks for, as for any executor of its agent, and returns the result to store. Null: it asks
   * for nothing, as most do.
   */
  resultOf(record: TaskRecord, result: unknown): Promise<unknown> | null {
    if (record.spec.postTo === undefined && writsInAnswer(result) === null) return null;
    const context = {
      signal: new AbortController().signal,
      log: this.#options.log,
    } as unknown as ExecutorContext;
    return Promise.resolve(this.#withFollowUps(async () => result, record)(toExecutorTask(record), context));
  }

  /** The agents of a tenant that a worker with these labels may not run. */
  notForLabels(tenant: string, labels: Readonly<Record<string, string>>): string[] {
    const excluded: string[] = [];
    for (const agents of [this.storedOf(tenant), this.#options.current.value.agents, this.#ofProgram]) {
      for (const [id, { require }] of agents) {
        if (require === undefined || this.find({ tenant, agent: id })?.agent.require !== require) continue;
        if (Object.entries(require.labels).some(([name, value]) => labels[name] !== value)) excluded.push(id);
      }
    }
    return excluded;
  }

  /** The agent's own executor, else that of the kind of task. `index` returns its input if it has neither. */
  executorFor(record: TaskRecord): Executor | undefined {
    const { tenant, agent, spec } = record;
    const known = this.find(record)?.agent;
    // A configuration that only adds a limit to a stored agent does not remove its executor.
    const own = known?.made ?? this.#stored.get(tenant)?.get(agent)?.made;
    const made = own ?? this.#options.current.value.executors.get(spec.work.kind);
    const executor = made?.executor ?? (agent === DEFAULT_AGENT ? echo : undefined);
    if (executor === undefined) return undefined;
    return this.#withFollowUps(executor, record);
  }

  /** Wraps an executor so that its result has its effects: writs are carried out, and it is posted to a session. */
  #withFollowUps(executor: Executor, record: TaskRecord): Executor {
    const { withWrits, withoutWrits, posting } = this.#options;
    const wrapped = this.find(record)?.agent.writs
      ? withWrits(executor, record.tenant)
      : withoutWrits(executor);
    return record.spec.postTo === undefined ? wrapped : posting(wrapped, record);
  }
}

/** Whether workers run it. */
function isForWorkers(made: MadeExecutor | undefined): boolean {
  return made !== undefined && typeof made.config !== "function" && made.config.type === "worker";
}

function nameOf({ config }: MadeExecutor): string {
  return typeof config === "function" ? "a function of a program" : `\`${config.type}\``;
}
