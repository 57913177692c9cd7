import type { TenantSlots } from "../../storage.ts";
import type { SqliteDatabase } from "../connection/database.ts";
import { nodesOfLane, type ServingNode } from "../connection/nodes-of-lane.ts";
import type { LaneRow } from "../counters/ledger.ts";

/** How many slots of one lane each tenant may still take; see `Claim.perTenant`. */
export class SlotsLeft {
  readonly #max: number;
  readonly #left: Map<string, number>;

  constructor({ max, left }: TenantSlots) {
    this.#max = max;
    this.#left = new Map(left);
  }

  of(tenant: string): number {
    return this.#left.get(tenant) ?? this.#max;
  }

  take(tenant: string): void {
    this.#left.set(tenant, this.of(tenant) - 1);
  }

  /** How many tenants can take no more slots. The index of tenants that can start something may still return them. */
  get full(): number {
    let count = 0;
    for (const left of this.#left.values()) if (left <= 0) count += 1;
    return count;
  }
}

/** How many of the slots that a node claims each tenant may take; null: no limit. */
export function slotsLeft(lane: LaneRow, perTenant: TenantSlots | undefined): SlotsLeft | null {
  return lane.second_tenant === 0 || perTenant === undefined ? null : new SlotsLeft(perTenant);
}

/** The shares of tenants on the nodes that serve a lane, computed from the leases. */
export class NodeShares {
  readonly nodes: readonly ServingNode[];
  /** Leases by node and tenant; null: nodes do not limit tenants. */
  readonly #held: ReadonlyMap<string, ReadonlyMap<string, number>> | null;

  constructor(db: SqliteDatabase, lane: LaneRow) {
    this.nodes = nodesOfLane(db, lane.name);
    const isShared = lane.second_tenant === 1 && this.nodes.some(({ perTenant }) => perTenant !== null);
    this.#held = isShared ? heldByTenants(db, lane.name) : null;
  }

  /** How many more slots of a node the tenant's share allows; negative if it holds more than its share. */
  roomOn({ node, perTenant }: ServingNode, tenant: string): number {
    if (this.#held === null || perTenant === null) return Number.POSITIVE_INFINITY;
    return perTenant - (this.#held.get(node)?.get(tenant) ?? 0);
  }

  /** How many of the free slots on all nodes a tenant may take. */
  freeFor(tenant: string): number {
    return this.nodes.reduce(
      (sum, node) => sum + Math.max(Math.min(node.free, this.roomOn(node, tenant)), 0),
      0,
    );
  }

  /** `freeFor` of each tenant; null: no limit. */
  get slotsLeft(): SlotsLeft | null {
    if (this.#held === null) return null;
    const tenants = new Set([...this.#held.values()].flatMap((held) => [...held.keys()]));
    const max = this.nodes.reduce(
      (sum, { free, perTenant }) => sum + Math.max(Math.min(free, perTenant ?? free), 0),
      0,
    );
    return new SlotsLeft({
      max,
      left: new Map([...tenants].map((tenant) => [tenant, this.freeFor(tenant)])),
    });
  }
}

function heldByTenants(db: SqliteDatabase, lane: string): Map<string, Map<string, number>> {
  const rows = db
    .prepare<{ node: string; tenant: string; held: number }>(
      `select l.node, n.tenant, count(*) as held from lease l join line n on n.id = l.line
        where n.lane = ? group by l.node, n.tenant`,
    )
    .all(lane);
  const held = new Map<string, Map<string, number>>();
  for (const row of rows) {
    const tenants = held.get(row.node) ?? new Map<string, number>();
    held.set(row.node, tenants.set(row.tenant, row.held));
  }
  return held;
}
