import type { TerminalState } from "./task-state.ts";

export const DELIVERY_STATUSES = ["pending", "delivered", "failed"] as const;
export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number];

/** The events that callbacks report. `task.completed` is every end of a task, in any state. */
export const DELIVERY_EVENTS = ["task.completed", "batch.completed"] as const;
export type DeliveryEvent = (typeof DELIVERY_EVENTS)[number];

/**
 * What a due callback waits for: `slot`, a free slot in the share of its tenant; `host`, a host that is new or fails, and gets
 * few at a time; `tenant_disabled`, its tenant.
 */
export const DELIVERY_WAITS = ["slot", "host", "tenant_disabled"] as const;
export type DeliveryWait = (typeof DELIVERY_WAITS)[number];

/** One callback: reports the end of a task or a batch to its URL. Times are RFC 3339. */
export interface Delivery {
  /** Also its `webhook-id`: the same for every try, so that the receiver can recognize a repetition. */
  readonly deliveryId: string;
  readonly event: DeliveryEvent;
  /** With `batch.completed`: the batch. */
  readonly batchId?: string;
  /** With `batch.completed`: the task of the batch that was accepted last. */
  readonly taskId: string;
  readonly url: string;
  /** With `task.completed`: how the task had ended. */
  readonly state?: TerminalState;
  /** `pending` waits for its next try, `failed` has none left. */
  readonly status: DeliveryStatus;
  /** How often it was tried. */
  readonly tries: number;
  readonly createdAt: string;
  /** While pending. */
  readonly nextTryAt?: string;
  /** What it waits for, while it is due and not sent yet. */
  readonly waitsFor?: DeliveryWait;
  readonly lastTryAt?: string;
  /** The HTTP status of the last response, if there was one. */
  readonly responseStatus?: number;
  /** Why the last try failed. */
  readonly error?: string;
}
