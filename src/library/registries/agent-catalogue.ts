import { isDeepStrictEqual } from "node:util";
import { readPatiently } from "../../engine/work/patient-read.ts";
import { NoExecutorError, PermanentError } from "../../executors/errors.ts";
import type { Executor } from "../../executors/executor.ts";
import type { AgentOptions } from "../../interface/options.ts";
import { type AgentName, agentKey } from "../../model/agent.ts";
import type { RotaError } from "../../model/errors.ts";
import type { TaskRecord } from "../../model/task-record.ts";
import type { TargetGuard } from "../../outbound/target-guard.ts";
import { FreshRead } from "../../services/fresh-read.ts";
import { Service, type ServiceOptions } from "../../services/service.ts";
import type { AgentRecord, CatalogueChanges, Storage } from "../../storage/storage.ts";
import { type Agent, readAgent, UNDESCRIBED } from "./agent.ts";
import type { AgentBounds } from "./agent-bounds.ts";
import { openHeaders } from "./agent-secrets.ts";
import type { AgentTable } from "./agent-table.ts";
import { SECRET_KEY_VARIABLE, type SecretBox } from "./secret-box.ts";

/** Signals can be lost: this node reads changes of other nodes at least this often. */
const POLL_MS = 30_000;
/** Changes per read. */
const CHANGES_SLICE = 1_000;

export interface AgentCatalogueOptions extends ServiceOptions {
  readonly storage: Storage;
  readonly agents: AgentTable;
  readonly bounds: AgentBounds;
  /** Decides which hosts executors of stored agents may call. */
  readonly guard: () => TargetGuard;
  /** Decrypts the headers of stored agents. */
  readonly box: SecretBox;
}

interface Entry {
  readonly record: AgentRecord;
  readonly agent: Agent;
}

/**
 * Keeps this process's copy of the stored agents of all tenants up to date: any node may change them at any time.
 */
export class AgentCatalogue extends Service<AgentCatalogueOptions> {
  readonly name = "agent catalogue";
  /** By `agentKey`. */
  readonly #entries = new Map<string, Entry>();
  /** The last change that was read; null: the next read has to read everything. */
  #lastChange: number | null = null;
  readonly #reads = new FreshRead(() => this.#read());
  /** Whether there are changes that this process has not read yet. */
  #stale = false;

  async tick(): Promise<number> {
    await this.read();
    return POLL_MS;
  }

  /** Agents were changed. */
  agentsChanged(): void {
    this.#stale = true;
    this.wake();
  }

  /** Resolves once this process has read every change stored before the call. */
  read(): Promise<void> {
    return this.#reads.now();
  }

  /** Whether an agent is known: to this node, to another one, or to a node of the last seven days. */
  async isKnown(name: AgentName): Promise<boolean> {
    const { agents, storage } = this.options;
    const source = agents.find(name)?.source;
    if (source === "config" || source === "built-in") return true;
    if (source === "stored" && storage.capabilities.exclusive) return true;
    await this.read();
    return agents.find(name) !== undefined || storage.agents.isKnown(name);
  }

  /** Makes all executors again: their allowed targets have changed. */
  rebuild(): void {
    for (const { record } of this.#entries.values()) this.#know(this.#toEntry(record, undefined));
  }

  /** The storage was restored to an earlier state: the number of the last change no longer fits, so that everything is read. */
  restored(): void {
    this.#lastChange = null;
  }

  /**
   * Returns the executor of a task. Another node may have created or changed the agent a moment ago. In that case it returns an
   * executor that reads the storage first.
   */
  executorFor(record: TaskRecord): Executor | undefined {
    const { agents, storage } = this.options;
    const known = agents.executorFor(record);
    if (agents.find(record)?.source === "config") return known;
    if (this.#stale) return this.#afterLook(record);
    return known !== undefined || storage.capabilities.exclusive ? known : this.#afterLook(record);
  }

  #afterLook(record: TaskRecord): Executor {
    return async (task, context) => {
      const { clock, random } = this;
      await readPatiently({ clock, random, signal: context.signal, read: () => this.read() });
      const executor = this.options.agents.executorFor(record);
      if (executor !== undefined) return executor(task, context);
      throw new NoExecutorError(record.agent);
    };
  }

  async #read(): Promise<void> {
    const stale = this.#stale;
    this.#stale = false;
    try {
      for (let more = true; more; ) {
        const since = this.#lastChange;
        const changes = await this.options.storage.agents.changes({ since, limit: CHANGES_SLICE });
        // The storage was restored during this read: the changes no longer fit.
        const isCurrent = since === this.#lastChange;
        if (isCurrent) this.#take(changes);
        more = !isCurrent || changes.more;
      }
    } catch (error) {
      this.#stale ||= stale;
      throw error;
    }
  }

  #take({ whole, agents, gone, goneTenants, last }: CatalogueChanges): void {
    for (const { record } of goneTenants.length === 0 ? [] : [...this.#entries.values()]) {
      if (goneTenants.includes(record.tenant)) this.#forget(record);
    }
    for (const record of agents) this.#learn(record);
    const kept = new Set(agents.map(agentKey));
    const names = whole ? [...this.#entries.values()].map(({ record }) => record) : gone;
    for (const name of names) if (!whole || !kept.has(agentKey(name))) this.#forget(name);
    this.#lastChange = last;
  }

  #learn(record: AgentRecord): void {
    const before = this.#entries.get(agentKey(record));
    if (before !== undefined && isDeepStrictEqual(record.definition, before.record.definition)) return;
    this.#know(this.#toEntry(record, before));
    this.#restoreBound(record);
  }

  #forget(name: AgentName): void {
    if (!this.#entries.delete(agentKey(name))) return;
    this.options.agents.dropStored(name);
    this.#restoreBound(name);
  }

  #know(entry: Entry): void {
    this.#entries.set(agentKey(entry.record), entry);
    this.options.agents.putStored(entry.record, entry.agent);
  }

  /** Uses only the definition: `maxInflight` of the record is the effective limit, which may come from the configuration. */
  #toEntry(record: AgentRecord, before: Entry | undefined): Entry {
    const opened = openHeaders(record.definition, record, this.options.box);
    const { executor: _, sealedWith: __, ...rest } = record.definition;
    const faults: RotaError[] = [];
    const agent = readAgent((opened ?? rest) as AgentOptions, {
      clock: this.clock,
      guard: this.options.guard(),
      before: before?.agent.made,
      prefix: "",
      faults,
    });
    const [fault] = faults;
    if (fault !== undefined) return { record, agent: this.#unusable(record, fault) };
    return { record, agent: opened === null ? { ...agent, ...this.#locked(record) } : agent };
  }

  /** Another version of Rota may have stored what this one does not understand. */
  #unusable({ tenant, agent: id }: AgentRecord, fault: RotaError): Agent {
    const error = `the agent "${id}" is stored in a way that cannot be used: ${fault.message}`;
    this.log.warn({ tenant, agent: id }, error);
    const executor: Executor = () => {
      throw new PermanentError(error);
    };
    return { ...UNDESCRIBED, made: { config: executor, executor }, unusable: error };
  }

  /** This node lacks the key of the agent and has no executor for it; another node may have it. */
  #locked({ tenant, agent: id }: AgentRecord): Pick<Agent, "made" | "unusable"> {
    const error = `the headers of the agent "${id}" were encrypted with a key that this node does not have: give it that ${SECRET_KEY_VARIABLE}`;
    this.log.warn({ tenant, agent: id }, error);
    const executor: Executor = () => {
      throw new NoExecutorError(id);
    };
    return { made: { config: executor, executor }, unusable: error };
  }

  /** Another node, without this agent in its configuration, may have overwritten the limit that our configuration sets. */
  #restoreBound(name: AgentName): void {
    const { agents, bounds } = this.options;
    if (agents.find(name)?.source === "config") bounds.changed(name);
  }
}

/** Neither part has a line break. */
