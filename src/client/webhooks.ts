import type { DeliveryFilter, DeliveryPage, Webhooks } from "../interface/webhooks.ts";
import type { Delivery } from "../model/delivery.ts";
import { RotaError } from "../model/errors.ts";
import type { CallOptions } from "./call-options.ts";
import type { Connection } from "./connection.ts";

/** Webhook deliveries over HTTP. */
export class HttpWebhooks implements Webhooks {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  deliveries(filter: DeliveryFilter = {}, { signal }: CallOptions = {}): Promise<DeliveryPage> {
    return this.#connection.ask({ path: "/v1/webhooks/deliveries", query: { ...filter }, signal });
  }

  async get(deliveryId: string, { signal }: CallOptions = {}): Promise<Delivery> {
    return this.#connection.ask({ path: deliveryPath(deliveryId), signal });
  }

  async resend(deliveryId: string, { signal }: CallOptions = {}): Promise<Delivery> {
    return this.#connection.ask({ method: "POST", path: `${deliveryPath(deliveryId)}/resend`, signal });
  }
}

/** A text that cannot be an id might lead to another route, so no request is sent. */
function deliveryPath(deliveryId: string): string {
  if (!/^[\w-]{1,100}$/.test(deliveryId)) throw new RotaError("not_found", "delivery not found");
  return `/v1/webhooks/deliveries/${deliveryId}`;
}
