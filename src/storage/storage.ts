/**
 * The storage contract: what a database must do for the engine. SQLite and PostgreSQL implement it, conformance/ tests that
 * they do, oracle/ is the same contract in plain TypeScript.
 *
 * Three rules hold for every operation:
 * - It is one transaction, over as many rows as it is given, and its events are rows of that transaction.
 * - Time is the storage's own clock, so that all nodes agree on it.
 * - It returns once its result survives a power cut, so that the caller may pass it on at once. An operation that *need not wait
 *   for the disk* says so, and how what a power cut undoes is done again. A power cut undoes the newest transactions only, and
 *   no start or end of a task that a client has seen.
 */
import type { AgentName } from "../model/agent.ts";
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
import type { WorkerStorage } from "./worker-storage.ts";

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
export * from "./submit-bounds.ts";
export * from "./task-reads.ts";
export * from "./task-storage.ts";
export * from "./tenant-storage.ts";
export * from "./worker-storage.ts";

export interface Storage {
  readonly capabilities: StorageCapabilities;
  readonly tasks: TaskStorage;
  readonly events: EventStorage;
  readonly logs: TaskLogStorage;
  readonly nodes: NodeStorage;
  readonly workers: WorkerStorage;
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

  /**
   * A random key that all nodes share, as hexadecimal digits. The first call with a name stores `fresh` and returns it; all others
   * return what is stored.
   */
  sharedSecret(params: { name: string; fresh: string }): Promise<string>;
  /** The storage's clock, in milliseconds since 1970. */
  now(): Promise<number>;
  /**
   * Resolves once something was written that survives a power cut; throws `storage_unavailable` if nothing can be written now.
   * After a success other writes work, too, until the next failure.
   */
  check(): Promise<void>;
  /** Calls `listener` for changes by this process and by other nodes, until the returned function is called. */
  subscribe(listener: (signal: StorageSignal) => void): () => void;
  /** Releases all resources. Idempotent; any other call after it fails with `storage_unavailable`. */
  close(): Promise<void>;
}

export interface StorageCapabilities {
  /** Whether accepted tasks survive a restart of the process: decides how long results are kept by default. */
  readonly durable: boolean;
  /**
   * Whether this process is the only one: then no other node can renew a lease, and the tasks of earlier nodes are rescued at
   * once instead of when their lease ends.
   */
  readonly exclusive: boolean;
  /** Whether an exchange takes so long that a node with short tasks should claim some ahead; see `Claim.ahead`. */
  readonly claimsAhead: boolean;
}

/**
 * Why a service should read the storage again. A signal is only a hint: it can be doubled, merged or lost. For each kind there
 * is also a slow poll.
 */
export type StorageSignal =
  /** Events were added and may be read. */
  | { readonly kind: "events" }
  /** A task that could not start before may be able to start now, in one of these lanes; left out: in any lane. */
  | { readonly kind: "work"; readonly lanes?: readonly string[] }
  /** The time that `tasks.nextDueAt` returns may be earlier now. */
  | { readonly kind: "due" }
  /** Rota ended these attempts: the node or the worker that runs them should stop them. */
  | { readonly kind: "fenced"; readonly tokens: readonly number[]; readonly reason: FenceReason }
  /** The end of a task still has to be passed on to dependants: call `tasks.release`. */
  | { readonly kind: "release" }
  /** There may be webhook deliveries that this node does not know of. */
  | { readonly kind: "deliveries" }
  /** The settings of lanes were changed. */
  | { readonly kind: "lanes" }
  /** The catalogue of agents was changed. */
  | { readonly kind: "agents" }
  /** The next due time of a schedule may be earlier now. */
  | { readonly kind: "schedules" }
  /** Notifications were added and may be read. */
  | { readonly kind: "notifications" }
  /** Tenants were created, changed or deleted. */
  | { readonly kind: "tenants" }
  /** Keys were created or deleted. */
  | { readonly kind: "keys" }
  /** A bulk action was added. */
  | { readonly kind: "bulks" }
  /** These workers were registered again, drained or removed. */
  | { readonly kind: "workers"; readonly ids: readonly string[] }
  /** Signals may have been lost: check everything. */
  | { readonly kind: "reconnected" };

export type FenceReason = "cancelled" | "preempted";

export interface LaneStorage {
  /**
   * Stores the limits, strategy and ageing of lanes, for all nodes. Lanes not named here stay as they are. If ageing changes,
   * the waiting tasks are ordered again.
   */
  configure(params: { lanes: readonly Omit<Lane, "concurrency">[] }): Promise<void>;
  list(): Promise<LaneRecord[]>;
  /** Stores how many tasks of a lane run at once; nodes adopt it. The lane need not exist yet. */
  put(params: LaneSetting): Promise<void>;
  /** What `put` stored, ordered by name. */
  settings(): Promise<LaneSetting[]>;
  /**
   * Cancels up to `limit` of a tenant's tasks that wait in a lane and were accepted up to `cutoff` (left out: up to now).
   * `more`: call again with the returned `cutoff`.
   */
  clear(params: {
    tenant: string;
    name: string;
    error: string;
    limit: number;
    cutoff?: number;
  }): Promise<{ cancelled: readonly EndedTask[]; more: boolean; cutoff: number }>;
}

/** `total`: over all nodes; null: no limit. */
export type LaneSetting = Pick<Lane, "name" | "concurrency" | "total">;

export interface LaneRecord extends Omit<Lane, "concurrency"> {
  /** Queued, delayed or waiting for something. */
  readonly waiting: number;
  /** Assigned or running. */
  readonly inflight: number;
  readonly running: number;
  /** When the oldest ready task was accepted; null: none is ready. */
  readonly oldestAt: number | null;
}

export interface AgentStorage {
  /** Limits how many tasks of an agent run at once over all lanes; null: no limit of its own. */
  configure(params: { tenant: string; agent: string; maxInflight: number | null }): Promise<void>;
  /** The agents outside the catalogue that have a limit, by tenant and id. */
  bounded(): Promise<AgentName[]>;

  /** Adds an agent and its limit to the catalogue. False: the id exists already, and nothing changed. */
  create(params: AgentRecord): Promise<boolean>;
  /** Replaces an agent of the catalogue. False: there is none. */
  update(params: AgentRecord): Promise<boolean>;
  /** Deletes an agent and its limit from the catalogue. False: there is none. */
  delete(params: AgentName): Promise<boolean>;
  /** The catalogue of all tenants, by tenant and id. */
  list(): Promise<AgentRecord[]>;
  /**
   * The first `limit` changes of the catalogue, of all tenants, after `since`, which is the `last` of an earlier call. `since`
   * null, or no longer known: the whole catalogue instead.
   */
  changes(params: { since: number | null; limit: number }): Promise<CatalogueChanges>;
  /** Whether a stored agent or a live node names this agent, or a node did in the last `AGENT_MEMORY_MS`. */
  isKnown(params: AgentName): Promise<boolean>;
  /** The first `limit` names of agents that `isKnown` holds for. */
  knownNames(params: { tenant: string; limit: number }): Promise<string[]>;
  /** Forgets agents that no node has named for `AGENT_MEMORY_MS`. Need not wait for the disk: the next call forgets them again. */
  forget(): Promise<void>;
}

/** An agent of the catalogue. */
export interface AgentRecord {
  readonly tenant: string;
  readonly agent: string;
  readonly maxInflight: number | null;
  /**
   * The rest of its definition, as JSON. The storage reads two fields: an agent with an `executor` is served, and `sealedWith`
   * names the key that a node needs to use that executor.
   */
  readonly definition: Readonly<Record<string, unknown>>;
}

/** How many changes of the catalogue are kept: a node that has missed more reads all of it. */
export const AGENT_CHANGES_KEPT = 10_000;

export interface CatalogueChanges {
  /** Whether `agents` is the whole catalogue, rather than what has changed in it. */
  readonly whole: boolean;
  /** As they are now. */
  readonly agents: readonly AgentRecord[];
  /** Deleted agents. */
  readonly gone: readonly AgentName[];
  /** Deleted tenants: all their agents that are not in `agents` are deleted, too. */
  readonly goneTenants: readonly string[];
  readonly last: number;
  /** Whether there are further changes after `last`. */
  readonly more: boolean;
}

export interface CounterStorage {
  /**
   * Counts the tasks of one agent queue, picked by `random` in [0, 1), and corrects its counters if they are off. Need not wait
   * for the disk: counters that are off again are corrected again.
   */
  recountOne(params: { random: number }): Promise<CounterFault[]>;
  /**
   * Counts everything, slice by slice, and changes nothing. Writes in between cause no false reports, and a counter that is
   * wrong throughout is found. For tests and `doctor`.
   */
  recountAll(params?: RecountParams): Promise<CounterFault[]>;
}

export interface RecountParams {
  /** Rows that one slice reads; left out: as many as take a few milliseconds. */
  readonly limit?: number;
  /** Called and awaited after each slice, so that the caller can let other work run. If it throws, the recount ends. */
  readonly onSlice?: (progress: RecountProgress) => void | Promise<void>;
}

export interface RecountProgress {
  /** Rows read so far, and about how many there are. */
  readonly rows: number;
  readonly rowsTotal: number;
}

/** A counter that differs from the number of rows. */
export interface CounterFault {
  readonly counter: string;
  readonly stored: number | string | null;
  readonly counted: number | string | null;
}
