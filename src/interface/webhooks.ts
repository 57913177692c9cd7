import type { Delivery, DeliveryStatus } from "../model/delivery.ts";

/** The webhook deliveries of tasks and batches. They are kept as long as their task. */
export interface Webhooks {
  /** Newest first, a page at a time. */
  deliveries(filter?: DeliveryFilter): Promise<DeliveryPage>;
  /** Throws `not_found`. */
  get(deliveryId: string): Promise<Delivery>;
  /** Sends it again at once, with all of its retries. Throws `not_found`, and `conflict` while it is pending. */
  resend(deliveryId: string): Promise<Delivery>;
}

export interface DeliveryFilter {
  readonly taskId?: string;
  readonly status?: DeliveryStatus;
  /** The most deliveries: 1 to 1000, 100 by default. */
  readonly limit?: number;
  /** `nextCursor` of the page before. */
  readonly cursor?: string;
}

export interface DeliveryPage {
  readonly deliveries: readonly Delivery[];
  /** Of this page. */
  readonly count: number;
  /** Null on the last page. */
  readonly nextCursor: string | null;
}
