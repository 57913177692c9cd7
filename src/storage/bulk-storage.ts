import type { BulkAction, BulkState } from "../model/bulk.ts";
import type { TaskOrder } from "../model/task-order.ts";
import type { TaskSelection } from "../model/task-selection.ts";
import type { EndedTask } from "./session-storage.ts";

/** Bulk actions, carried out in slices in the background: one part of the contract in storage.ts. */
export interface BulkStorage {
  /**
   * Stores a bulk action for later execution. False: its tenant has `runningMax` running ones already, and nothing was stored.
   * Of the tenant's ended ones, the newest `keptMax` are kept.
   */
  add(params: NewBulk & { runningMax: number; keptMax: number }): Promise<boolean>;
  get(params: BulkName): Promise<BulkRecord | null>;
  /** Ends a running bulk action and returns its new state; null: there is none. */
  abort(params: BulkName): Promise<BulkRecord | null>;
  /**
   * Leases a running bulk action for one slice. Tenants take turns, and so do the bulk actions of a tenant: the one served
   * longest ago goes first. Null: none is free. `retryMs`: after how long the first lease of another node ends; null: none
   * runs. Need not wait for the disk: a lease that a power cut undoes is given again, and `step` acts only once.
   */
  claim(params: { leaseMs: number }): Promise<{ bulk: BulkRecord | null; retryMs: number | null }>;
  /**
   * Carries out one slice and moves the cursor, in one transaction: so each task is acted on at most once, even if two nodes
   * try. A task that has ended since the request is not retried or deleted. Null: another node was faster, or the bulk
   * action has ended.
   */
  step(params: BulkStep): Promise<SteppedBulk | null>;
}

export interface BulkName {
  readonly tenant: string;
  readonly id: string;
}

/** The tasks of a bulk action, and the order in which it acts on them. Left out: `newest`. */
export interface BulkSelection extends TaskSelection {
  readonly order?: TaskOrder;
}

export interface NewBulk extends BulkName {
  readonly action: BulkAction;
  /** The filter of the request; null: the request had `ids`. */
  readonly filter: Readonly<Record<string, unknown>> | null;
  readonly selection: BulkSelection | null;
  /** The task ids of the request; null: the request had a filter. */
  readonly ids: readonly string[] | null;
  /** How many tasks it covers at most. */
  readonly limit: number;
  /** Tasks that matched at the time of the request. */
  readonly matched: number;
  /** The last task of the tenant that was accepted before the request. */
  readonly lastSeq: number;
  /** Where the first slice begins: in the order of the selection, or an index of `ids`. */
  readonly cursor: number;
  /** The id of the API key of the request; null: the request had none. */
  readonly by: string | null;
  readonly requestedAt: number;
}

/** `ids` is null once it has ended. */
export interface BulkRecord extends NewBulk {
  readonly state: BulkState;
  readonly done: number;
  /** Tasks that no longer existed. */
  readonly failed: number;
  /** Tasks that the action could not be applied to any more. */
  readonly skipped: number;
}

export interface BulkStep extends BulkName {
  /** Where the slice began. */
  readonly cursor: number;
  /** Where the next one begins; null: this was the last. */
  readonly next: number | null;
  readonly ids: readonly string[];
}

export interface SteppedBulk {
  readonly bulk: BulkRecord;
  readonly cancelled: readonly EndedTask[];
}
