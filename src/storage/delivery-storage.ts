/** How a storage keeps callbacks that are to be made: one part of the contract in storage.ts. */
import type { DeliveryStatus } from "../model/delivery.ts";
import type { TaskRecord } from "../model/task-record.ts";
import type { TaskState, TerminalState } from "../model/task-state.ts";

/**
 * Callbacks to be made. One comes into being with the end of a task that has a `callbackUrl`, in the transaction that
 * ends it, and goes with its task; another with the end of the last task of a batch that has one. Its number is that of
 * the event that tells of the end.
 */
export interface DeliveryStorage {
  /**
   * Hands out deliveries that are due, the longest due first. Each counts as tried, and is due again after `holdMs`:
   * should whoever took it die, somebody else goes on then.
   */
  claim(params: { limit: number; holdMs: number }): Promise<ClaimedDelivery[]>;
  /**
   * Writes down what became of tries. One that was tried again since, or sent anew, stays as it is: `tries` must be
   * the number that was handed out.
   */
  settle(params: { tries: readonly SettledTry[] }): Promise<void>;
  /**
   * Takes claims back that nothing was done with: the try does not count, and each is due when `dueAt` says. One that was
   * claimed again since stays as it is.
   */
  putBack(params: { claims: readonly PutBackClaim[] }): Promise<void>;
  /** When the next one is due; null when none is pending. */
  nextDueAt(): Promise<number | null>;
  /** Newest first. */
  list(params: ListDeliveriesParams): Promise<{ deliveries: DeliveryRecord[]; nextCursor: number | null }>;
  get(params: { tenant: string; seq: number }): Promise<DeliveryRecord | null>;
  /** Makes one that is over due at once, as if it had never been tried. `was`: nothing changed. */
  resend(params: { tenant: string; seq: number }): Promise<ResentDelivery>;
}

export interface DeliveryRecord {
  readonly seq: number;
  readonly tenant: string;
  readonly taskSeq: number;
  readonly taskId: string;
  readonly url: string;
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
