import { NEWCOMER_LEAD } from "../../../model/lane.ts";
import type { SqliteDatabase } from "../connection/database.ts";
import type { AgentQueue, LaneRow } from "./ledger.ts";

/** A row of `tenant_line`, being changed. */
export interface TenantQueue {
  readonly id: number;
  readonly lane: string;
  readonly tenant: string;
  readonly max_queued: number | null;
  readonly max_inflight: number | null;
  /** How many slots of the lane it may hold, over all nodes; null: no limit. */
  readonly lane_max: number | null;
  readonly disabled: 0 | 1;
  waiting: number;
  exempt: number;
  inflight: number;
  supply: number;
  urgent_lines: number;
  last_served: number;
  /** Column `owed`. */
  preemptionCredit: number;
  ahead_streak: number;
}

export const TENANT_AGENT_QUEUE_COLUMNS =
  "id, lane, tenant, max_queued, max_inflight, lane_max, disabled, waiting, exempt, inflight, supply, urgent_lines, last_served, owed as preemptionCredit, ahead_streak";

/** With more lanes than this, the database sums a tenant's counters over its lanes. */
const LANES_SUMMED_MAX = 32;

/** The counters of an agent queue that are added up for its tenant. */
type Counted = Pick<AgentQueue, "waiting" | "exempt" | "inflight" | "room" | "ahead">;

/**
 * The tenants whose tasks one transaction moves: read when first needed, written once at its end. Their counters follow from
 * their agent queues, so that code that moves a task counts it only there.
 */
export class TenantLedger {
  readonly #db: SqliteDatabase;
  readonly #rows = new Map<string, Map<string, TenantQueue>>();
  readonly #asRead = new Map<TenantQueue, TenantQueue>();
  readonly #complete = new Set<string>();
  readonly #followed = new Map<AgentQueue, Counted>();

  constructor(db: SqliteDatabase) {
    this.#db = db;
  }

  /** The tenant of an agent queue, in its lane. */
  of({ lane, tenant }: { readonly lane: string; readonly tenant: string }): TenantQueue {
    const known = this.#find(lane, tenant);
    if (known !== undefined) return known;
    const row =
      this.#kept(lane)?.get(tenant) ??
      this.#db
        .prepare<TenantQueue>(
          `select ${TENANT_AGENT_QUEUE_COLUMNS} from tenant_line where tenant = ? and lane = ?`,
        )
        .get(tenant, lane);
    if (row === undefined) throw new Error(`tenant ${tenant} is gone from lane ${lane}`);
    return this.adopt(row);
  }

  /** A tenant in every lane that it has used. */
  ofTenant(tenant: string): TenantQueue[] {
    if (!this.#complete.has(tenant)) {
      const rows = this.#db
        .prepare<TenantQueue>(`select ${TENANT_AGENT_QUEUE_COLUMNS} from tenant_line where tenant = ?`)
        .all(tenant);
      for (const row of rows) this.adopt(row);
      this.#complete.add(tenant);
    }
    return [...(this.#rows.get(tenant)?.values() ?? [])];
  }

  /** Every tenant, in one lane or in all. */
  adoptAll(lane: string | null = null): TenantQueue[] {
    const rows = this.#db
      .prepare<TenantQueue>(
        `select ${TENANT_AGENT_QUEUE_COLUMNS} from tenant_line where @lane is null or lane = @lane`,
      )
      .all({ lane });
    return rows.map((row) => this.adopt(row));
  }

  /** Adds a row that a query read, unless this transaction has it already. */
  adopt(row: TenantQueue): TenantQueue {
    const known = this.#find(row.lane, row.tenant);
    if (known !== undefined) return known;
    const agentQueue = { ...row };
    const lanes = this.#rows.get(row.tenant) ?? new Map<string, TenantQueue>();
    lanes.set(row.lane, agentQueue);
    this.#rows.set(row.tenant, lanes);
    this.#asRead.set(agentQueue, row);
    return agentQueue;
  }

  /** Inserts the row of a tenant in a lane, if there is none. */
  ensure(lane: string, tenant: string): void {
    const row = this.#db
      .prepare<TenantQueue>(
        `insert into tenant_line (lane, tenant, max_queued, max_inflight, lane_max, disabled, last_served)
         select @lane, @tenant, t.max_queued, t.max_inflight, l.per_tenant, coalesce(t.disabled, 0), @served
           from (select 1) left join tenant t on t.id = @tenant left join lane l on l.name = @lane and l.second_tenant = 1
          where true
         on conflict (tenant, lane) do nothing returning ${TENANT_AGENT_QUEUE_COLUMNS}`,
      )
      .get({ lane, tenant, served: this.#db.lastEventSeq - NEWCOMER_LEAD });
    if (row !== undefined) this.adopt(row);
  }

  /** The tenants that may get the next `slots` starts of a lane, if up to `passedOver` of the first ones may get none. */
  candidates(lane: string, slots: number, passedOver: number): TenantQueue[] {
    const kept = this.#kept(lane);
    if (kept !== undefined) {
      for (const row of kept.values()) this.adopt(row);
      return this.#touchedIn(lane);
    }
    // The first ones by the index, and those that this transaction has changed: the index does not have these changes yet.
    const touched = this.#touchedIn(lane);
    const rows = this.#db
      .prepare<TenantQueue>(
        `select ${TENANT_AGENT_QUEUE_COLUMNS} from tenant_line where lane = ? and startable = 1
          order by owed = 0, inflight, last_served, id limit +?`,
      )
      .all(lane, slots + touched.length + passedOver);
    return [...new Set([...touched, ...rows.map((row) => this.adopt(row))])];
  }

  /** All tenants that this transaction has read. */
  all(): Iterable<TenantQueue> {
    return this.#asRead.keys();
  }

  /** Tenants in a lane that this transaction may have changed. */
  #touchedIn(lane: string): TenantQueue[] {
    this.#readSiblings();
    return [...this.#asRead.keys()].filter((tenantQueue) => tenantQueue.lane === lane);
  }

  /** All tenants in a lane as they were before this transaction; undefined if there are too many to cache. */
  #kept(lane: string): ReadonlyMap<string, TenantQueue> | undefined {
    return this.#db.agentQueues.tenantsIn(lane, (limit) =>
      this.#db
        .prepare<TenantQueue>(`select ${TENANT_AGENT_QUEUE_COLUMNS} from tenant_line where lane = ? limit +?`)
        .all(lane, limit),
    );
  }

  /** Counts what has changed in an agent queue since it was `read`, or since the last call. */
  follow(
    agentQueue: AgentQueue,
    read: Counted | undefined,
    { room, ahead }: { readonly room: number; readonly ahead: 0 | 1 },
  ): void {
    const before = this.#followed.get(agentQueue) ?? read;
    if (before === undefined) throw new Error(`line ${agentQueue.id} was never read`);
    const { waiting, exempt, inflight } = agentQueue;
    if (
      before.waiting === waiting &&
      before.exempt === exempt &&
      before.inflight === inflight &&
      before.room === room &&
      before.ahead === ahead
    )
      return;
    const own = this.of(agentQueue);
    own.waiting += waiting - before.waiting;
    own.exempt += exempt - before.exempt;
    own.inflight += inflight - before.inflight;
    own.supply += room - before.room;
    own.urgent_lines += isUrgent(room, ahead) - isUrgent(before.room, before.ahead);
    this.#followed.set(agentQueue, { waiting, exempt, inflight, room, ahead });
  }

  /** How many more tasks of a tenant may start in a lane, apart from the total of the lane. */
  room(tenantQueue: TenantQueue): number {
    if (tenantQueue.disabled === 1) return 0;
    const room = Math.min(tenantQueue.supply, this.shareRoom(tenantQueue));
    if (tenantQueue.max_inflight === null) return Math.max(room, 0);
    const inflight = this.ofTenant(tenantQueue.tenant).reduce((sum, { inflight }) => sum + inflight, 0);
    return Math.max(Math.min(room, tenantQueue.max_inflight - inflight), 0);
  }

  /** How many more slots of a lane the tenant's share allows, over all nodes; negative if it holds more than its share. */
  shareRoom({ lane_max, inflight }: TenantQueue): number {
    return lane_max === null ? Number.POSITIVE_INFINITY : lane_max - inflight;
  }

  /** Whether a tenant is disabled or at its limit over all lanes, so that nothing of it starts. */
  isAtBound(tenant: { readonly lane: string; readonly tenant: string }): boolean {
    const tenantQueue = this.of(tenant);
    if (tenantQueue.disabled === 1 || tenantQueue.max_inflight === null) return tenantQueue.disabled === 1;
    const inflight = this.ofTenant(tenantQueue.tenant).reduce((sum, each) => sum + each.inflight, 0);
    return inflight >= tenantQueue.max_inflight;
  }

  /** How many tasks of a tenant waited before this transaction, as admission counts them. `lanes`: all lanes. */
  queued(tenant: string, lanes: ReadonlyMap<string, unknown>): number {
    if (lanes.size > LANES_SUMMED_MAX) return this.#readQueued(tenant);
    let sum = 0;
    for (const lane of lanes.keys()) {
      const kept = this.#kept(lane);
      if (kept === undefined) return this.#readQueued(tenant);
      const tenantQueue = kept.get(tenant);
      if (tenantQueue !== undefined) sum += tenantQueue.waiting - tenantQueue.exempt;
    }
    return sum;
  }

  #readQueued(tenant: string): number {
    const row = this.#db
      .prepare<{ queued: number }>(
        "select coalesce(sum(waiting - exempt), 0) as queued from tenant_line where tenant = ?",
      )
      .get(tenant);
    return row?.queued ?? 0;
  }

  /** Passes changes of what admission does not count on to the lanes. Of a disabled tenant that is everything that waits. */
  countExempt(laneOf: (name: string) => LaneRow): void {
    for (const [tenantQueue, read] of this.#asRead) {
      const exempt =
        tenantQueue.disabled === 1 ? tenantQueue.waiting - read.waiting : tenantQueue.exempt - read.exempt;
      if (exempt !== 0) laneOf(tenantQueue.lane).exempt += exempt;
    }
  }

  /** `limitsChanged`: tenants may start more or fewer tasks now. */
  save({ limitsChanged = false } = {}): void {
    this.#readSiblings();
    for (const [tenantQueue, read] of this.#asRead) {
      if (limitsChanged || tenantQueue.max_inflight !== null) this.#saveAll(tenantQueue);
      else if (this.#hasSameOrder(tenantQueue, read)) this.#saveCounts(tenantQueue, read);
      else this.#saveAll(tenantQueue);
    }
  }

  #saveAll(tenantQueue: TenantQueue): void {
    this.#db
      .prepare(
        `update tenant_line set waiting = ?, exempt = ?, inflight = ?, supply = ?, urgent_lines = ?, last_served = ?, owed = ?,
                                ahead_streak = ?, startable = ? where id = ?`,
      )
      .run(
        tenantQueue.waiting,
        tenantQueue.exempt,
        tenantQueue.inflight,
        tenantQueue.supply,
        tenantQueue.urgent_lines,
        tenantQueue.last_served,
        tenantQueue.preemptionCredit,
        tenantQueue.ahead_streak,
        this.room(tenantQueue) > 0 ? 1 : 0,
        tenantQueue.id,
      );
  }

  /**
   * Writes only what no index has: SQLite rewrites the entries of an index whose columns are set, even to the same values, which is one
   * more page for each commit. `#hasSameOrder` must compare every column that this does not write and `#saveAll` does.
   */
  #saveCounts(tenantQueue: TenantQueue, read: TenantQueue): void {
    const { waiting, exempt, supply, urgent_lines, ahead_streak, id } = tenantQueue;
    const isAsRead =
      waiting === read.waiting &&
      exempt === read.exempt &&
      supply === read.supply &&
      urgent_lines === read.urgent_lines &&
      ahead_streak === read.ahead_streak;
    if (isAsRead) return;
    this.#db
      .prepare(
        "update tenant_line set waiting = ?, exempt = ?, supply = ?, urgent_lines = ?, ahead_streak = ? where id = ?",
      )
      .run(waiting, exempt, supply, urgent_lines, ahead_streak, id);
  }

  /** Whether no column of an index on tenants has changed. Compares all that `#saveCounts` does not write. */
  #hasSameOrder(tenantQueue: TenantQueue, read: TenantQueue): boolean {
    return (
      tenantQueue.inflight === read.inflight &&
      tenantQueue.last_served === read.last_served &&
      tenantQueue.preemptionCredit === read.preemptionCredit &&
      this.room(tenantQueue) > 0 === this.room(read) > 0
    );
  }

  /** If a tenant has a limit, a change in one lane changes its room in all others. */
  #readSiblings(): void {
    for (const tenantQueue of [...this.#asRead.keys()])
      if (tenantQueue.max_inflight !== null) this.ofTenant(tenantQueue.tenant);
  }

  #find(lane: string, tenant: string): TenantQueue | undefined {
    return this.#rows.get(tenant)?.get(lane);
  }
}

/** Whether an agent queue can start something that goes ahead of fairness. */
function isUrgent(room: number, ahead: 0 | 1): 0 | 1 {
  return room > 0 ? ahead : 0;
}
