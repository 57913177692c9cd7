import type { Log } from "../model/log.ts";
import { DEFAULT_TENANT } from "../model/task.ts";
import type { Storage } from "../storage/storage.ts";
import type { AgentTable } from "./agent-table.ts";
import type { OneAtATime } from "./one-at-a-time.ts";

export interface AgentBoundsOptions {
  readonly storage: Storage;
  readonly agents: AgentTable;
  /** Whatever changes agents takes turns: of two bounds of one agent the later must be the one that stays. */
  readonly turns: OneAtATime;
  readonly log: Log;
}

/** Tells the storage how many tasks of an agent run at once. */
export class AgentBounds {
  readonly #options: AgentBoundsOptions;
  /** Agents of which the storage was not told yet, or not since they changed. */
  readonly #untold: Set<string>;
  #live = false;

  constructor(options: AgentBoundsOptions) {
    this.#options = options;
    this.#untold = new Set(options.agents.configuredIds());
  }

  /** The bound of an agent is another one now. */
  changed(id: string): void {
    this.#untold.add(id);
    if (this.#live) void this.#storeLater();
  }

  /**
   * Makes the bounds right that earlier starts left behind, of agents that the configuration had then and has no longer.
   * Only where this process is the only one: elsewhere another may well have them.
   */
  async mend(): Promise<void> {
    const { storage, agents, turns } = this.#options;
    if (!storage.capabilities.exclusive) return;
    await turns.run(async () => {
      const bounded = await storage.agents.bounded();
      const listed = await storage.agents.list();
      const wrong = listed.filter(({ agent, maxInflight }) => maxInflight !== agents.maxInflight(agent));
      for (const { tenant, agent } of [...bounded, ...wrong]) {
        if (tenant === DEFAULT_TENANT && agents.find(agent)?.source !== "config") this.#untold.add(agent);
      }
    });
  }

  /** Tells what was not told yet. */
  store(): Promise<void> {
    if (this.#untold.size === 0) return this.#options.turns.idle();
    return this.#options.turns.run(async () => {
      // A set goes on to what is added to it meanwhile.
      for (const id of this.#untold) await this.#tell(id);
    });
  }

  /** From now on changes are told as they happen. Resolves once those that happened before are. */
  async goLive(): Promise<void> {
    this.#live = true;
    await this.#storeLater();
  }

  rest(): void {
    this.#live = false;
  }

  /** Nobody is left to be told of a failure but the log; the next change of an agent tries again. */
  async #storeLater(): Promise<void> {
    await this.store().catch((error) =>
      this.#options.log.error({ error, agents: [...this.#untold] }, "could not store the limits of agents"),
    );
  }

  async #tell(id: string): Promise<void> {
    const { storage, agents } = this.#options;
    this.#untold.delete(id);
    try {
      const maxInflight = agents.maxInflight(id);
      await storage.agents.configure({ tenant: DEFAULT_TENANT, agent: id, maxInflight });
    } catch (error) {
      this.#untold.add(id);
      throw error;
    }
  }
}
