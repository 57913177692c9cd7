import type { AgentQueue, LaneRow } from "./ledger.ts";
import type { TenantQueue } from "./tenant-ledger.ts";

/** The most agent queues in the cache. Beyond that it is cleared, and rows are read again when needed. */
const AGENT_QUEUES_MAX = 20_000;
/** A lane with more tenants than this is not cached; the index finds the tenants that can start something. */
const TENANTS_MAX = 32;

/**
 * Agent queues, tenants and lanes as last committed, so that a transaction need not read what the previous one wrote. Only one
 * process writes to the file, so nothing here can be out of date.
 */
export class AgentQueueCache {
  readonly #agentQueues = new Map<number, AgentQueue>();
  readonly #idsOfAgent = new Map<string, readonly number[]>();
  /** By lane, then by tenant: all tenants of a lane or none. */
  readonly #tenants = new Map<string, Map<string, TenantQueue>>();
  /** Lanes with more than `TENANTS_MAX` tenants. */
  readonly #manyTenants = new Set<string>();
  #lanes: Map<string, LaneRow> | null = null;
  #changed: AgentQueue[] = [];
  #changedTenants: TenantQueue[] = [];
  #changedLanes: LaneRow[] = [];

  get(id: number): AgentQueue | undefined {
    return this.#agentQueues.get(id);
  }

  /** All queues of an agent; undefined if they are not cached. */
  ofAgent(name: string): AgentQueue[] | undefined {
    const ids = this.#idsOfAgent.get(name);
    const agentQueues = ids?.flatMap((id) => this.#agentQueues.get(id) ?? []);
    return agentQueues?.length === ids?.length ? agentQueues : undefined;
  }

  /** All tenants in a lane, by name; undefined if there are more than `TENANTS_MAX`. */
  tenantsIn(
    lane: string,
    read: (limit: number) => readonly TenantQueue[],
  ): ReadonlyMap<string, TenantQueue> | undefined {
    if (this.#manyTenants.has(lane)) return undefined;
    let tenants = this.#tenants.get(lane);
    if (tenants === undefined) {
      tenants = new Map(read(TENANTS_MAX + 1).map((tenantQueue) => [tenantQueue.tenant, tenantQueue]));
      this.#keepTenants(lane, tenants);
    }
    return this.#tenants.get(lane);
  }

  /** All lanes, by name. */
  lanes(read: () => readonly LaneRow[]): ReadonlyMap<string, LaneRow> {
    this.#lanes ??= new Map(read().map((lane) => [lane.name, lane]));
    return this.#lanes;
  }

  /** Adds rows that the current transaction has written. The cache uses them after the commit. */
  stage(agentQueues: readonly AgentQueue[], tenants: Iterable<TenantQueue>, lanes: Iterable<LaneRow>): void {
    // One by one: there may be more agent queues than a call can have arguments.
    for (const agentQueue of agentQueues) this.#changed.push(agentQueue);
    for (const tenant of tenants) this.#changedTenants.push(tenant);
    for (const lane of lanes) this.#changedLanes.push(lane);
  }

  /** Adds all queues of an agent, as the current transaction has them. */
  stageAgent(name: string, agentQueues: readonly AgentQueue[]): void {
    this.stage(agentQueues, [], []);
    this.#idsOfAgent.set(
      name,
      agentQueues.map(({ id }) => id),
    );
  }

  committed(): void {
    for (const agentQueue of this.#changed) this.#agentQueues.set(agentQueue.id, agentQueue);
    for (const tenantQueue of this.#changedTenants) this.#commitTenant(tenantQueue);
    for (const lane of this.#changedLanes) this.#lanes?.set(lane.name, lane);
    this.#changed = [];
    this.#changedTenants = [];
    this.#changedLanes = [];
    if (this.#agentQueues.size > AGENT_QUEUES_MAX) this.clear();
  }

  /** Clears the cache: a transaction failed, or changed rows without the ledger. */
  clear(): void {
    this.#agentQueues.clear();
    this.#idsOfAgent.clear();
    this.#tenants.clear();
    this.#manyTenants.clear();
    this.#lanes = null;
    this.#changed = [];
    this.#changedTenants = [];
    this.#changedLanes = [];
  }

  #commitTenant(tenantQueue: TenantQueue): void {
    const tenants = this.#tenants.get(tenantQueue.lane);
    if (tenants !== undefined)
      this.#keepTenants(tenantQueue.lane, tenants.set(tenantQueue.tenant, tenantQueue));
  }

  #keepTenants(lane: string, tenants: Map<string, TenantQueue>): void {
    if (tenants.size <= TENANTS_MAX) {
      this.#tenants.set(lane, tenants);
      return;
    }
    this.#tenants.delete(lane);
    this.#manyTenants.add(lane);
  }
}
