/** Webhook deliveries: one part of the contract in storage.ts. */
import type { DeliveryStatus } from "../model/delivery.ts";
import type { DeliveryShares, HeldDelivery } from "../model/delivery-shares.ts";
import type { TaskRecord } from "../model/task-record.ts";
import type { TaskState, TerminalState } from "../model/task-state.ts";

/**
 * Webhook deliveries. The transaction that ends a task with a `callbackUrl` adds one; it is deleted with its task. The end of
 * the last task of a batch with a `callbackUrl` adds another. A delivery has the number of the event that reports the end.
 */
export interface DeliveryStorage {
  /**
   * Claims deliveries that are due, as many as `shares` allow beside those that the caller holds already. Tenants take turns,
   * and so do the hosts of a tenant; of a host the longest due goes first. A tenant or host that was served waits until all
   * others that were due by then had their turn. Each claim counts as a try and is a lease of `holdMs`: if the caller dies,
   * another node claims the delivery after that. Deliveries of a disabled tenant are not claimed. The cost of a claim grows
   * with what it returns and with `held`, not with what is pending.
   */
  claim(params: ClaimDeliveriesParams): Promise<ClaimedDeliveries>;
  /**
   * Stores the outcomes of tries, and counts failures of the host: see `FAILURES_MAX`. `tries` must be the number that the
   * claim returned: a delivery that was claimed again or re-sent since stays as it is.
   */
  settle(params: { tries: readonly SettledTry[] }): Promise<void>;
  /**
   * Returns unused claims: the try does not count, and the delivery is due at `dueAt`. A delivery that was claimed again since
   * stays as it is.
   */
  putBack(params: { claims: readonly PutBackClaim[] }): Promise<void>;
  /** Newest first. */
  list(params: ListDeliveriesParams): Promise<{ deliveries: DeliveryRecord[]; nextCursor: number | null }>;
  get(params: { tenant: string; seq: number }): Promise<DeliveryRecord | null>;
  /** Makes a delivery that has ended due at once, as if it had never been tried. `was` not null: nothing changed. */
  resend(params: { tenant: string; seq: number }): Promise<ResentDelivery>;
}

export interface ClaimDeliveriesParams {
  readonly shares: DeliveryShares;
  /** Earlier claims that the caller still works on. */
  readonly held: readonly HeldDelivery[];
  readonly holdMs: number;
}

export interface ClaimedDeliveries {
  readonly claimed: ClaimedDelivery[];
  /**
   * When to claim again if nothing changes: the due time of the next delivery that `shares` allow beside what the caller then
   * holds. Null: none is pending, or all have to wait until the caller ends one that it holds.
   */
  readonly nextAt: number | null;
}

export interface DeliveryRecord {
  readonly seq: number;
  readonly tenant: string;
  readonly taskSeq: number;
  readonly taskId: string;
  readonly url: string;
  /** The result of `callbackHost` for the URL. */
  readonly host: string;
  /** Whether its host is proven for the tenant; see `FAILURES_MAX`. */
  readonly hostProven: boolean;
  /** The end of the task that it reports; the task may have been retried since. Null: it reports a batch. */
  readonly end: TaskEnd | null;
  /** The end of the batch that it reports; the task is the last accepted task of the batch. Null: it reports the task. */
  readonly batch: BatchEnd | null;
  readonly status: DeliveryStatus;
  readonly tries: number;
  readonly createdAt: number;
  /** Null unless pending. */
  readonly dueAt: number | null;
  /** These three are null before the first try, and if there is no value. */
  readonly lastTryAt: number | null;
  readonly responseStatus: number | null;
  readonly error: string | null;
}

/** The fields of a task that a retry after its end overwrites. */
export interface TaskEnd {
  readonly state: TerminalState;
  readonly completedAt: number;
  readonly error: string | null;
  readonly retryCount: number;
  /** How many attempts there had been. */
  readonly attempts: number;
}

export interface BatchEnd {
  readonly id: string;
  readonly createdAt: number;
  readonly completedAt: number;
  readonly parallelism: number | null;
  readonly counts: Readonly<Partial<Record<TaskState, number>>>;
}

/** `hostProven` of the delivery is its value at the time of the claim. */
export interface ClaimedDelivery {
  readonly delivery: DeliveryRecord;
  /** As it is now. */
  readonly task: TaskRecord;
}

export interface SettledTry {
  readonly seq: number;
  readonly tries: number;
  readonly status: DeliveryStatus;
  /** With `pending`: when to try again. */
  readonly dueAt: number | null;
  readonly responseStatus: number | null;
  readonly error: string | null;
}

/**
 * `tries` and `heldUntil` must be the `tries` and `dueAt` that the claim returned. `tries` alone is not unique: after a claim
 * was returned, the next one has the same number, and a late caller would return the claim of another node.
 */
export type PutBackClaim = Readonly<
  Pick<SettledTry, "seq" | "tries"> & {
    heldUntil: number;
    dueAt: number;
  }
>;

export interface ListDeliveriesParams {
  readonly tenant: string;
  readonly taskId?: string;
  readonly status?: DeliveryStatus;
  readonly limit: number;
  /** From `nextCursor` of the page before. */
  readonly cursor?: number;
}

export type ResentDelivery =
  | { readonly found: false }
  | { readonly found: true; readonly was: "pending" }
  | { readonly found: true; readonly was: null; readonly delivery: DeliveryRecord };
