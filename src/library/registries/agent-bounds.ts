import { type AgentName, agentKey } from "../../model/agent.ts";
import type { Log } from "../../model/log.ts";
import { DEFAULT_TENANT } from "../../model/tenant.ts";
import type { Storage } from "../../storage/storage.ts";
import type { OneAtATime } from "../one-at-a-time.ts";
import type { AgentTable } from "./agent-table.ts";

export interface AgentBoundsOptions {
  readonly storage: Storage;
  readonly agents: AgentTable;
  /** The ids of all tenants. */
  readonly tenants: () => readonly string[];
  /** Serializes changes of agents: of two limits of one agent, the later must win. */
  readonly turns: OneAtATime;
  readonly log: Log;
}

/** Stores how many tasks of an agent may run at once; the limit applies to each tenant by itself. */
export class AgentBounds {
  readonly #options: AgentBoundsOptions;
  /** Agents whose limit is not stored yet, or has changed since. */
  readonly #unsaved = new Names();
  #live = false;

  constructor(options: AgentBoundsOptions) {
    this.#options = options;
    for (const agent of options.agents.configuredIds()) this.#unsaved.add({ tenant: DEFAULT_TENANT, agent });
    for (const tenant of options.tenants()) this.#addBoundsOf(tenant);
  }

  /** The limit of an agent has changed. */
  changed(name: AgentName): void {
    this.#unsaved.add(name);
    if (this.#live) void this.#storeLater();
  }

  /** Applies a change of an agent that serves all tenants. Its limit is stored for each tenant for which it has changed. */
  changeForAll(agent: string, change: () => void): void {
    const { agents, tenants } = this.#options;
    const names = tenants().map((tenant) => ({ tenant, agent }));
    const before = names.map((name) => agents.maxInflight(name));
    change();
    for (const [index, name] of names.entries()) {
      const isOther = agents.maxInflight(name) !== before[index];
      if (isOther || name.tenant === DEFAULT_TENANT) this.#unsaved.add(name);
    }
    if (this.#live) void this.#storeLater();
  }

  /** A tenant was added: the limits of agents that serve all tenants apply to it as well. */
  tenantAdded(tenant: string): void {
    this.#addBoundsOf(tenant);
    if (this.#live) void this.#storeLater();
  }

  /**
   * Corrects limits that earlier starts left in the storage: of agents that have no limit any more, and of agents that left the
   * configuration. The latter only if this process has the storage to itself: otherwise another node may still have them.
   */
  async mend(): Promise<void> {
    const { storage, agents, turns } = this.#options;
    const { exclusive } = storage.capabilities;
    await turns.run(async () => {
      for (const name of await storage.agents.bounded()) {
        const isConfigured = agents.find(name)?.source === "config";
        if (isConfigured ? agents.maxInflight(name) === null : exclusive) this.#unsaved.add(name);
      }
      if (!exclusive) return;
      for (const record of await storage.agents.list()) {
        const isWrong = record.maxInflight !== agents.maxInflight(record);
        if (isWrong && agents.find(record)?.source !== "config") this.#unsaved.add(record);
      }
    });
  }

  /** The storage was restored to an earlier state, and may have lost limits that were stored since. */
  async restored(): Promise<void> {
    if (!this.#live) return;
    const { tenants, log } = this.#options;
    for (const tenant of tenants()) this.#addBoundsOf(tenant);
    await this.mend().catch((error) => log.error({ error }, "could not read the limits of agents"));
    await this.#storeLater();
  }

  /** Stores the limits that are not stored yet. */
  store(): Promise<void> {
    if (this.#unsaved.size === 0) return this.#options.turns.idle();
    return this.#options.turns.run(async () => {
      for (let next = this.#unsaved.take(); next !== undefined; next = this.#unsaved.take()) {
        await this.#storeOne(next);
      }
    });
  }

  /** From now on changes are stored as they happen. Resolves once the earlier changes are stored. */
  async goLive(): Promise<void> {
    this.#live = true;
    await this.#storeLater();
  }

  /** Resolves once the changes so far are stored. A failure is logged, and the next change retries. */
  settled(): Promise<void> {
    return this.#storeLater();
  }

  rest(): void {
    this.#live = false;
  }

  #addBoundsOf(tenant: string): void {
    const { agents } = this.#options;
    for (const agent of agents.configuredIds()) {
      if (agents.maxInflight({ tenant, agent }) !== null) this.#unsaved.add({ tenant, agent });
    }
  }

  /** No caller waits, so that a failure is only logged; the next change of an agent retries. */
  async #storeLater(): Promise<void> {
    await this.store().catch((error) =>
      this.#options.log.error({ error, agents: this.#unsaved.size }, "could not store the limits of agents"),
    );
  }

  async #storeOne({ tenant, agent }: AgentName): Promise<void> {
    const { storage, agents } = this.#options;
    try {
      const maxInflight = agents.maxInflight({ tenant, agent });
      await storage.agents.configure({ tenant, agent, maxInflight });
    } catch (error) {
      this.#unsaved.add({ tenant, agent });
      throw error;
    }
  }
}

/** Names of agents without duplicates, in the order in which they were added. */
class Names {
  readonly #names = new Map<string, AgentName>();

  get size(): number {
    return this.#names.size;
  }

  add({ tenant, agent }: AgentName): void {
    this.#names.set(agentKey({ tenant, agent }), { tenant, agent });
  }

  take(): AgentName | undefined {
    const [first] = this.#names;
    if (first !== undefined) this.#names.delete(first[0]);
    return first?.[1];
  }
}
