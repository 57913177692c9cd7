import type { AgentName } from "../../engine/schedules/run-maker.ts";
import type { Log } from "../../model/log.ts";
import { DEFAULT_TENANT } from "../../model/task.ts";
import type { Storage } from "../../storage/storage.ts";
import type { OneAtATime } from "../one-at-a-time.ts";
import type { AgentTable } from "./agent-table.ts";

export interface AgentBoundsOptions {
  readonly storage: Storage;
  readonly agents: AgentTable;
  /** The ids of the tenants there are. */
  readonly tenants: () => readonly string[];
  /** Whatever changes agents takes turns: of two bounds of one agent the later must be the one that stays. */
  readonly turns: OneAtATime;
  readonly log: Log;
}

/** Tells the storage how many tasks of an agent run at once: of each tenant as many. */
export class AgentBounds {
  readonly #options: AgentBoundsOptions;
  /** Agents of which the storage was not told yet, or not since they changed. */
  readonly #untold = new Names();
  #live = false;

  constructor(options: AgentBoundsOptions) {
    this.#options = options;
    for (const agent of options.agents.configuredIds()) this.#untold.add({ tenant: DEFAULT_TENANT, agent });
    for (const tenant of options.tenants()) this.#addBoundsOf(tenant);
  }

  /** The bound of an agent is another one now. */
  changed(name: AgentName): void {
    this.#untold.add(name);
    if (this.#live) void this.#storeLater();
  }

  /** Lets somebody change an agent that serves all tenants: those are told of for which its bound is another then. */
  changeForAll(agent: string, change: () => void): void {
    const { agents, tenants } = this.#options;
    const names = tenants().map((tenant) => ({ tenant, agent }));
    const before = names.map((name) => agents.maxInflight(name));
    change();
    for (const [place, name] of names.entries()) {
      const isOther = agents.maxInflight(name) !== before[place];
      if (isOther || name.tenant === DEFAULT_TENANT) this.#untold.add(name);
    }
    if (this.#live) void this.#storeLater();
  }

  /** A tenant is there that was not: what bounds the agents that serve all tenants bounds its own, too. */
  tenantAdded(tenant: string): void {
    this.#addBoundsOf(tenant);
    if (this.#live) void this.#storeLater();
  }

  /**
   * Makes the bounds right that earlier starts left behind: of agents that have none any more, and of those that the
   * configuration had then and has no longer. The latter only where this process is the only one: elsewhere another may
   * well have them.
   */
  async mend(): Promise<void> {
    const { storage, agents, turns } = this.#options;
    const { exclusive } = storage.capabilities;
    await turns.run(async () => {
      for (const name of await storage.agents.bounded()) {
        const isConfigured = agents.find(name)?.source === "config";
        if (isConfigured ? agents.maxInflight(name) === null : exclusive) this.#untold.add(name);
      }
      if (!exclusive) return;
      for (const record of await storage.agents.list()) {
        const isWrong = record.maxInflight !== agents.maxInflight(record);
        if (isWrong && agents.find(record)?.source !== "config") this.#untold.add(record);
      }
    });
  }

  /** The storage was put back to an earlier state, and may have other bounds than it was told since. */
  async restored(): Promise<void> {
    if (!this.#live) return;
    const { tenants, log } = this.#options;
    for (const tenant of tenants()) this.#addBoundsOf(tenant);
    await this.mend().catch((error) => log.error({ error }, "could not read the limits of agents"));
    await this.#storeLater();
  }

  /** Tells what was not told yet. */
  store(): Promise<void> {
    if (this.#untold.size === 0) return this.#options.turns.idle();
    return this.#options.turns.run(async () => {
      for (let next = this.#untold.take(); next !== undefined; next = this.#untold.take()) {
        await this.#tell(next);
      }
    });
  }

  /** From now on changes are told as they happen. Resolves once those that happened before are. */
  async goLive(): Promise<void> {
    this.#live = true;
    await this.#storeLater();
  }

  /** Resolves once what changed so far is told, or could not be: the log says so, and the next change tries again. */
  settled(): Promise<void> {
    return this.#storeLater();
  }

  rest(): void {
    this.#live = false;
  }

  #addBoundsOf(tenant: string): void {
    const { agents } = this.#options;
    for (const agent of agents.configuredIds()) {
      if (agents.maxInflight({ tenant, agent }) !== null) this.#untold.add({ tenant, agent });
    }
  }

  /** Nobody is left to be told of a failure but the log; the next change of an agent tries again. */
  async #storeLater(): Promise<void> {
    await this.store().catch((error) =>
      this.#options.log.error({ error, agents: this.#untold.size }, "could not store the limits of agents"),
    );
  }

  async #tell({ tenant, agent }: AgentName): Promise<void> {
    const { storage, agents } = this.#options;
    try {
      const maxInflight = agents.maxInflight({ tenant, agent });
      await storage.agents.configure({ tenant, agent, maxInflight });
    } catch (error) {
      this.#untold.add({ tenant, agent });
      throw error;
    }
  }
}

/** Names of agents, each once, in the order they came. */
class Names {
  readonly #names = new Map<string, AgentName>();

  get size(): number {
    return this.#names.size;
  }

  add({ tenant, agent }: AgentName): void {
    this.#names.set(JSON.stringify([tenant, agent]), { tenant, agent });
  }

  take(): AgentName | undefined {
    const [first] = this.#names;
    if (first !== undefined) this.#names.delete(first[0]);
    return first?.[1];
  }
}
