import type { Webhooks } from "../../interface/webhooks.ts";
import type { Delivery } from "../../model/delivery.ts";
import { RotaError } from "../../model/errors.ts";
import { parseDeliveryFilter } from "../../model/input/delivery-filter-input.ts";
import type { StorageClock } from "../../services/storage-clock.ts";
import type { DeliveryRecord, Storage } from "../../storage/storage.ts";
import { deliveryId, seqOfDelivery } from "../../webhooks/delivery-id.ts";
import { toDelivery } from "../../webhooks/to-delivery.ts";

export interface WebhooksOptions {
  readonly tenant: string;
  readonly storage: Storage;
  readonly storageClock: Pick<StorageClock, "now">;
  /** Whether the tenant is disabled. */
  readonly isDisabled: () => Promise<boolean>;
  /** Called when there is a delivery to send. */
  readonly onResend: () => void;
}

/** The webhooks API of one tenant. */
export function createWebhooks(options: WebhooksOptions): Webhooks {
  const { tenant, storage, storageClock, isDisabled, onResend } = options;

  async function find(id: string) {
    const seq = seqOfDelivery(id);
    const record = seq === null ? null : await storage.deliveries.get({ tenant, seq });
    if (record === null || deliveryId(record) !== id) throw notFound();
    return record;
  }

  async function shown(records: readonly DeliveryRecord[]): Promise<Delivery[]> {
    const moment = { now: storageClock.now(), isDisabled: await isDisabled() };
    return records.map((record) => toDelivery(record, moment));
  }

  async function shownOne(record: DeliveryRecord): Promise<Delivery> {
    const [delivery] = await shown([record]);
    return delivery as Delivery;
  }

  return {
    async deliveries(filter = {}) {
      const params = parseDeliveryFilter({ ...filter });
      const { deliveries, nextCursor } = await storage.deliveries.list({ tenant, ...params });
      return {
        deliveries: await shown(deliveries),
        count: deliveries.length,
        nextCursor: nextCursor === null ? null : String(nextCursor),
      };
    },

    async get(id) {
      return shownOne(await find(id));
    },

    async resend(id) {
      const { seq } = await find(id);
      const resent = await storage.deliveries.resend({ tenant, seq });
      if (!resent.found) throw notFound();
      if (resent.was !== null) {
        throw new RotaError("conflict", "the delivery is pending: it will be sent anyway");
      }
      onResend();
      return shownOne(resent.delivery);
    },
  };
}

function notFound(): RotaError {
  return new RotaError("not_found", "delivery not found");
}
