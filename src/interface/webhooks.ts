import type { Delivery } from "../model/delivery.ts";
import type { DELIVERY_FILTER } from "../model/input/delivery-filter-input.ts";
import type { InputOf } from "../model/input/schema.ts";

/** The webhook deliveries of tasks and batches. They are kept as long as their task. */
export interface Webhooks {
  /** Newest first, a page at a time. */
  deliveries(filter?: DeliveryFilter): Promise<DeliveryPage>;
  /** Throws `not_found`. */
  get(deliveryId: string): Promise<Delivery>;
  /** Sends it again at once, with all of its retries. Throws `not_found`, and `conflict` while it is pending. */
  resend(deliveryId: string): Promise<Delivery>;
}

export type DeliveryFilter = InputOf<typeof DELIVERY_FILTER.fields>;

export interface DeliveryPage {
  readonly deliveries: readonly Delivery[];
  /** Of this page. */
  readonly count: number;
  /** Null on the last page. */
  readonly nextCursor: string | null;
}
