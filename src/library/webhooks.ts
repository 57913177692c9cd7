import type { Webhooks } from "../interface/webhooks.ts";
import { parseDeliveryFilter } from "../model/delivery-filter-input.ts";
import { RotaError } from "../model/errors.ts";
import type { Storage } from "../storage/storage.ts";
import { deliveryId, seqOfDelivery } from "../webhooks/delivery-id.ts";
import { toDelivery } from "../webhooks/to-delivery.ts";

export interface WebhooksOptions {
  readonly tenant: string;
  readonly storage: Storage;
  /** Told when there is something to send. */
  readonly onResend: () => void;
}

/** One tenant's callbacks, as its users look after them. */
export function createWebhooks({ tenant, storage, onResend }: WebhooksOptions): Webhooks {
  async function find(id: string) {
    const seq = seqOfDelivery(id);
    const record = seq === null ? null : await storage.deliveries.get({ tenant, seq });
    if (record === null || deliveryId(record) !== id) throw notFound();
    return record;
  }

  return {
    async deliveries(filter = {}) {
      const params = parseDeliveryFilter({ ...filter });
      const { deliveries, nextCursor } = await storage.deliveries.list({ tenant, ...params });
      return {
        deliveries: deliveries.map(toDelivery),
        count: deliveries.length,
        nextCursor: nextCursor === null ? null : String(nextCursor),
      };
    },

    async get(id) {
      return toDelivery(await find(id));
    },

    async resend(id) {
      const { seq } = await find(id);
      const resent = await storage.deliveries.resend({ tenant, seq });
      if (!resent.found) throw notFound();
      if (resent.was !== null) {
        throw new RotaError("conflict", "the delivery is pending: it will be sent anyway");
      }
      onResend();
      return toDelivery(resent.delivery);
    },
  };
}

function notFound(): RotaError {
  return new RotaError("not_found", "delivery not found");
}
