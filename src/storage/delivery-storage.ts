/** How a storage keeps callbacks that are to be made: one part of the contract in storage.ts. */
import type { DeliveryStatus } from "../model/delivery.ts";
import type { DeliveryShares, HeldDelivery } from "../model/delivery-shares.ts";
import type { TaskRecord } from "../model/task-record.ts";
import type { TaskState, TerminalState } from "../model/task-state.ts";

/**
 * Callbacks to be made. One comes into being with the end of a task that has a `callbackUrl`, in the transaction that
 * ends it, and goes with its task; another with the end of the last task of a batch that has one. Its number is that of
 * the event that tells of the end.
 */
export interface DeliveryStorage {
  /**
   * Hands out deliveries that are due, as many as `shares` allow beside those that the caller holds already. Tenants take
   * turns, and so do the hosts of a tenant; of a host the longest due goes first. Whoever was served waits until everyone that
   * was due before that had its turn. Each counts as tried, and is due again after `holdMs`: should the caller die, another
   * node goes on then. Nothing of a disabled tenant is handed out. What a claim costs grows with what it hands out and with
   * `held`, not with what is pending.
   */
  claim(params: ClaimDeliveriesParams): Promise<ClaimedDeliveries>;
  /**
   * Stores the outcomes of tries, and what they say of the host: see `FAILURES_MAX`. One that was tried again since, or sent
   * anew, stays as it is: `tries` must be the number that was handed out.
   */
  settle(params: { tries: readonly SettledTry[] }): Promise<void>;
  /**
   * Takes claims back that nothing was done with: the try does not count, and each is due when `dueAt` says. One that was
   * claimed again since stays as it is.
   */
  putBack(params: { claims: readonly PutBackClaim[] }): Promise<void>;
  /** Newest first. */
  list(params: ListDeliveriesParams): Promise<{ deliveries: DeliveryRecord[]; nextCursor: number | null }>;
  get(params: { tenant: string; seq: number }): Promise<DeliveryRecord | null>;
  /** Makes one that is over due at once, as if it had never been tried. `was`: nothing changed. */
  resend(params: { tenant: string; seq: number }): Promise<ResentDelivery>;
}

export interface ClaimDeliveriesParams {
  readonly shares: DeliveryShares;
  /** What the caller claimed before and is still at. */
  readonly held: readonly HeldDelivery[];
  readonly holdMs: number;
}

export interface ClaimedDeliveries {
  readonly claimed: ClaimedDelivery[];
  /**
   * When to claim again if nothing changes: when the next one is due that may be handed out beside what the caller then
   * holds. Null: none is pending, or all have to wait for one that is held.
   */
  readonly nextAt: number | null;
}

export interface DeliveryRecord {
  readonly seq: number;
  readonly tenant: string;
  readonly taskSeq: number;
  readonly taskId: string;
  readonly url: string;
  /** As `callbackHost` reads it off the URL. */
  readonly host: string;
  /** Whether its host is proven for the tenant; see `FAILURES_MAX`. */
  readonly hostProven: boolean;
  /** The end it tells of: the task may have been retried since. Null: it tells of a batch. */
  readonly end: TaskEnd | null;
  /** The end of the batch that it tells of; the task is the last that was accepted of it. Null: it tells of the task. */
  readonly batch: BatchEnd | null;
  readonly status: DeliveryStatus;
  readonly tries: number;
  readonly createdAt: number;
  /** Null unless pending. */
  readonly dueAt: number | null;
  /** These three are null until it was tried, and null where there is nothing to tell. */
  readonly lastTryAt: number | null;
  readonly responseStatus: number | null;
  readonly error: string | null;
}

/** What of a task is overwritten when it is retried after its end. */
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

/** `hostProven` of the delivery is what it was handed out as. */
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
 * `tries` and `heldUntil` must be what was handed out, as `tries` and `dueAt`: a number alone comes again once a claim was
 * taken back, and whoever does not know that it was would take back the claim of another.
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
