/**
 * The storage contract: what a database must do for the engine. SQLite and PostgreSQL keep it, conformance/ proves
 * that they do, oracle/ says the same in plain TypeScript.
 *
 * Three rules hold for every operation:
 * - It is one transaction, over as many rows as it is given, and its events are rows of that transaction.
 * - Time is the storage's own clock, so that all nodes agree on it.
 * - What it answers may be told to the outside at once: it is durable. `finishAndClaim` is the exception and says how.
 */
import type { Lane } from "../model/lane.ts";
import type { AuditStorage } from "./audit-storage.ts";
import type { BulkStorage } from "./bulk-storage.ts";
import type { DeliveryStorage } from "./delivery-storage.ts";
import type { EventStorage } from "./event-storage.ts";
import type { KeyStorage } from "./key-storage.ts";
import type { TaskLogStorage } from "./log-storage.ts";
import type { NodeStorage } from "./node-storage.ts";
import type { NotificationStorage } from "./notification-storage.ts";
import type { RollupStorage } from "./rollup-storage.ts";
import type { ScheduleStorage } from "./schedule-storage.ts";
import type { EndedTask, SessionStorage } from "./session-storage.ts";
import type { TaskStorage } from "./task-storage.ts";
import type { TenantStorage } from "./tenant-storage.ts";

export * from "./audit-storage.ts";
export * from "./bulk-storage.ts";
export * from "./delivery-storage.ts";
export * from "./event-storage.ts";
export * from "./key-storage.ts";
export * from "./log-storage.ts";
export * from "./node-storage.ts";
export * from "./notification-storage.ts";
export * from "./rollup-storage.ts";
export * from "./schedule-storage.ts";
export * from "./session-storage.ts";
export * from "./task-storage.ts";
export * from "./tenant-storage.ts";

export interface Storage {
  readonly capabilities: StorageCapabilities;
  readonly tasks: TaskStorage;
  readonly events: EventStorage;
  readonly logs: TaskLogStorage;
  readonly nodes: NodeStorage;
  readonly sessions: SessionStorage;
  readonly schedules: ScheduleStorage;
  readonly notifications: NotificationStorage;
  readonly lanes: LaneStorage;
  readonly agents: AgentStorage;
  readonly deliveries: DeliveryStorage;
  readonly tenants: TenantStorage;
  readonly keys: KeyStorage;
  readonly audit: AuditStorage;
  readonly bulks: BulkStorage;
  readonly rollups: RollupStorage;
  readonly counters: CounterStorage;

  /** The storage's clock, in milliseconds since 1970. */
  now(): Promise<number>;
  /**
   * Resolves once something was written that survives a power cut; throws `storage_unavailable` if nothing can be written
   * now. After it has worked, other writes do, unless something breaks anew.
   */
  check(): Promise<void>;
  /** Tells `listener` of what happened elsewhere or just now, until the returned function is called. */
  subscribe(listener: (signal: StorageSignal) => void): () => void;
  /** Lets go of everything. Closing twice is fine; any other call after it fails with `storage_unavailable`. */
  close(): Promise<void>;
}

export interface StorageCapabilities {
  /** Whether what was accepted outlives the process: decides how long results are kept by default. */
  readonly durable: boolean;
  /**
   * Whether this process is the only one: then nobody else can renew a lease, and what other nodes left behind is
   * rescued at once instead of after a lease.
   */
  readonly exclusive: boolean;
}

/**
 * Why somebody may want to look at the storage. Signals wake and carry no truth: they can be doubled, merged or lost,
 * and a slow poll stands behind each.
 */
export type StorageSignal =
  /** Events were added and may be read. */
  | { readonly kind: "events" }
  /** In some lane something may be able to start that could not before. */
  | { readonly kind: "work" }
  /** The earliest due moment may have moved forward. */
  | { readonly kind: "due" }
  /** These attempts lost their lease: whoever runs them should stop. */
  | { readonly kind: "fenced"; readonly tokens: readonly number[]; readonly reason: FenceReason }
  /** Dependants have yet to hear of an end: `tasks.release` tells them. */
  | { readonly kind: "release" }
  /** Callbacks are to be made that nobody here may know of. */
  | { readonly kind: "deliveries" }
  /** The settings of lanes were changed. */
  | { readonly kind: "lanes" }
  /** The catalogue of agents was changed. */
  | { readonly kind: "agents" }
  /** The next moment of a schedule may have moved forward. */
  | { readonly kind: "schedules" }
  /** Notifications were added and may be read. */
  | { readonly kind: "notifications" }
  /** Tenants were made, changed or deleted. */
  | { readonly kind: "tenants" }
  /** Keys were made or taken away. */
  | { readonly kind: "keys" }
  /** A bulk action was added. */
  | { readonly kind: "bulks" }
  /** Signals may have been missed: look at everything. */
  | { readonly kind: "reconnected" };

export type FenceReason = "cancelled" | "preempted";

export interface LaneStorage {
  /**
   * Writes down the limits, strategy and ageing of lanes, for all nodes. Lanes not named here stay as they are. Where
   * ageing changes, what waits is put in order anew.
   */
  configure(params: { lanes: readonly Omit<Lane, "concurrency">[] }): Promise<void>;
  list(): Promise<LaneRecord[]>;
  /** Stores how much of a lane runs at once, for nodes to take over; there need not be such a lane yet. */
  put(params: LaneSetting): Promise<void>;
  /** What was stored so, by name. */
  settings(): Promise<LaneSetting[]>;
  /**
   * Cancels up to `limit` of a tenant's tasks that wait in a lane and were accepted up to `cutoff` (left out: by now).
   * `more`: call again with the `cutoff` that was answered.
   */
  clear(params: {
    tenant: string;
    name: string;
    error: string;
    limit: number;
    cutoff?: number;
  }): Promise<{ cancelled: readonly EndedTask[]; more: boolean; cutoff: number }>;
}

/** `total`: over all nodes; null: no bound. */
export type LaneSetting = Pick<Lane, "name" | "concurrency" | "total">;

export interface LaneRecord extends Omit<Lane, "concurrency"> {
  /** Queued, delayed or waiting for something. */
  readonly waiting: number;
  readonly inflight: number;
  /** When the task was accepted that could start and has waited longest; null: none could. */
  readonly oldestAt: number | null;
}

export interface AgentStorage {
  /** Bounds how many tasks of an agent run at once over all lanes; null: no bound of its own. */
  configure(params: { tenant: string; agent: string; maxInflight: number | null }): Promise<void>;
  /** The agents outside the catalogue that have a bound, by tenant and id. */
  bounded(): Promise<{ tenant: string; agent: string }[]>;

  /** Adds an agent to the catalogue, and its bound with it. False: there is one of that id, and nothing changed. */
  create(params: AgentRecord): Promise<boolean>;
  /** Replaces an agent of the catalogue. False: there is none. */
  update(params: AgentRecord): Promise<boolean>;
  /** Takes an agent out of the catalogue, and its bound away. False: there is none. */
  delete(params: { tenant: string; agent: string }): Promise<boolean>;
  /** The catalogue of all tenants, by tenant and id. */
  list(): Promise<AgentRecord[]>;
  /**
   * The first `limit` changes of the catalogue, of all tenants, after `since`, which is the `last` of an earlier call. `since`
   * null, or no longer known: the whole catalogue instead.
   */
  changes(params: { since: number | null; limit: number }): Promise<CatalogueChanges>;
  /** Whether a stored agent, a live node, or a node of the last `AGENT_MEMORY_MS` names this agent. */
  isKnown(params: { tenant: string; agent: string }): Promise<boolean>;
  /** The first `limit` names of agents that `isKnown` holds for. */
  knownNames(params: { tenant: string; limit: number }): Promise<string[]>;
  /** Forgets agents that no node has named for `AGENT_MEMORY_MS`. */
  forget(): Promise<void>;
}

/** An agent of the catalogue. */
export interface AgentRecord {
  readonly tenant: string;
  readonly agent: string;
  readonly maxInflight: number | null;
  /** What else was said of it, as JSON. The storage looks at one thing only: with an `executor` the agent is served. */
  readonly definition: Readonly<Record<string, unknown>>;
}

/** How many changes of the catalogue are kept: a node that has missed more reads all of it. */
export const AGENT_CHANGES_KEPT = 10_000;

export interface CatalogueChanges {
  /** Whether `agents` is the whole catalogue, rather than what has changed in it. */
  readonly whole: boolean;
  /** As they are now. */
  readonly agents: readonly AgentRecord[];
  /** Those that are in it no more. */
  readonly gone: readonly { readonly tenant: string; readonly agent: string }[];
  /** Deleted tenants: all their agents that are not in `agents` are gone. */
  readonly goneTenants: readonly string[];
  readonly last: number;
  /** Whether there are further changes after `last`. */
  readonly more: boolean;
}

export interface CounterStorage {
  /** Counts the rows behind one line picked by `random` in [0, 1), and mends the line if it is off. */
  recountOne(params: { random: number }): Promise<CounterFault[]>;
  /**
   * Counts everything, slice by slice, and changes nothing. What it returns is wrong, however much changes meanwhile, and
   * what is wrong all the time is found. For tests and `doctor`.
   */
  recountAll(params?: RecountParams): Promise<CounterFault[]>;
}

export interface RecountParams {
  /** Rows that one slice looks at; left out: as many as take a few milliseconds. */
  readonly limit?: number;
  /** Called after each slice, and waited for: so the caller lets other work through. What it throws ends the recount. */
  readonly onSlice?: (progress: RecountProgress) => void | Promise<void>;
}

export interface RecountProgress {
  /** Rows that were looked at, and about how many there are. */
  readonly rows: number;
  readonly rowsTotal: number;
}

/** A counter that does not say what the rows say. */
export interface CounterFault {
  readonly counter: string;
  readonly stored: number | string | null;
  readonly counted: number | string | null;
}
