import type { TerminalState } from "./task-state.ts";

export const DELIVERY_STATUSES = ["pending", "delivered", "failed"] as const;
export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number];

/** What callbacks tell of. `task.completed` is every end of a task, however it ended. */
export const DELIVERY_EVENTS = ["task.completed", "batch.completed"] as const;
export type DeliveryEvent = (typeof DELIVERY_EVENTS)[number];

/**
 * What holds back a callback that is due: a free slot of its tenant's share; its host, which is new or fails and gets few at a
 * time; or its tenant, which is disabled.
 */
export const DELIVERY_WAITS = ["slot", "host", "tenant_disabled"] as const;
export type DeliveryWait = (typeof DELIVERY_WAITS)[number];

/** One callback: that a task or a batch ended, told to the URL it named. Times are RFC 3339. */
export interface Delivery {
  /** Also its `webhook-id`: the same for every try, so that the receiver can tell a repetition. */
  readonly deliveryId: string;
  readonly event: DeliveryEvent;
  /** With `batch.completed`: the batch. */
  readonly batchId?: string;
  /** With `batch.completed`: of its tasks, the one that was accepted last. */
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
  /** While it is due and not sent yet: what it waits for. */
  readonly waitsFor?: DeliveryWait;
  readonly lastTryAt?: string;
  /** The HTTP status of the last answer, when there was one. */
  readonly responseStatus?: number;
  /** Why the last try failed. */
  readonly error?: string;
}
