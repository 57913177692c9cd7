import type { LaneRow, Line } from "./ledger.ts";
import type { TenantLine } from "./tenant-ledger.ts";

/** The most agent queues in the cache. Beyond that it is cleared, and rows are read again when needed. */
const LINES_MAX = 20_000;
/** A lane with more tenants than this is not cached; the index finds the tenants that can start something. */
const TENANTS_MAX = 32;

/**
 * Agent queues, tenants and lanes as last committed, so that a transaction need not read what the previous one wrote. Only one
 * process writes to the file, so nothing here can be out of date.
 */
export class LineCache {
  readonly #lines = new Map<number, Line>();
  readonly #idsOfAgent = new Map<string, readonly number[]>();
  /** By lane, then by tenant: all tenants of a lane or none. */
  readonly #tenants = new Map<string, Map<string, TenantLine>>();
  /** Lanes with more than `TENANTS_MAX` tenants. */
  readonly #crowded = new Set<string>();
  #lanes: Map<string, LaneRow> | null = null;
  #changed: Line[] = [];
  #changedTenants: TenantLine[] = [];
  #changedLanes: LaneRow[] = [];

  get(id: number): Line | undefined {
    return this.#lines.get(id);
  }

  /** All queues of an agent; undefined if they are not cached. */
  ofAgent(name: string): Line[] | undefined {
    const ids = this.#idsOfAgent.get(name);
    const lines = ids?.flatMap((id) => this.#lines.get(id) ?? []);
    return lines?.length === ids?.length ? lines : undefined;
  }

  /** All tenants in a lane, by name; undefined if there are more than `TENANTS_MAX`. */
  tenantsIn(
    lane: string,
    read: (limit: number) => readonly TenantLine[],
  ): ReadonlyMap<string, TenantLine> | undefined {
    if (this.#crowded.has(lane)) return undefined;
    let tenants = this.#tenants.get(lane);
    if (tenants === undefined) {
      tenants = new Map(read(TENANTS_MAX + 1).map((line) => [line.tenant, line]));
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
  stage(lines: readonly Line[], tenants: Iterable<TenantLine>, lanes: Iterable<LaneRow>): void {
    // One by one: there may be more agent queues than a call can have arguments.
    for (const line of lines) this.#changed.push(line);
    for (const tenant of tenants) this.#changedTenants.push(tenant);
    for (const lane of lanes) this.#changedLanes.push(lane);
  }

  /** Adds all queues of an agent, as the current transaction has them. */
  stageAgent(name: string, lines: readonly Line[]): void {
    this.stage(lines, [], []);
    this.#idsOfAgent.set(
      name,
      lines.map(({ id }) => id),
    );
  }

  committed(): void {
    for (const line of this.#changed) this.#lines.set(line.id, line);
    for (const line of this.#changedTenants) this.#commitTenant(line);
    for (const lane of this.#changedLanes) this.#lanes?.set(lane.name, lane);
    this.#changed = [];
    this.#changedTenants = [];
    this.#changedLanes = [];
    if (this.#lines.size > LINES_MAX) this.clear();
  }

  /** Clears the cache: a transaction failed, or changed rows without the ledger. */
  clear(): void {
    this.#lines.clear();
    this.#idsOfAgent.clear();
    this.#tenants.clear();
    this.#crowded.clear();
    this.#lanes = null;
    this.#changed = [];
    this.#changedTenants = [];
    this.#changedLanes = [];
  }

  #commitTenant(line: TenantLine): void {
    const tenants = this.#tenants.get(line.lane);
    if (tenants !== undefined) this.#keepTenants(line.lane, tenants.set(line.tenant, line));
  }

  #keepTenants(lane: string, tenants: Map<string, TenantLine>): void {
    if (tenants.size <= TENANTS_MAX) {
      this.#tenants.set(lane, tenants);
      return;
    }
    this.#tenants.delete(lane);
    this.#crowded.add(lane);
  }
}
