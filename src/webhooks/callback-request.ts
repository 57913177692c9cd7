import type { Redactor } from "../model/redactor.ts";
import type { ClaimedDelivery } from "../storage/storage.ts";
import { batchCompleted } from "./batch-completed.ts";
import { deliveryId } from "./delivery-id.ts";
import type { SignedContent } from "./signature.ts";
import { snapshotAt } from "./snapshot.ts";
import { deliveryEvent } from "./to-delivery.ts";

export interface CallbackRequest {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface CallbackParams {
  readonly now: number;
  readonly version: string;
  readonly redactor: Redactor;
  /** The `webhook-signature` of what is sent for a tenant; null: it is not signed. */
  readonly sign: (tenant: string, content: SignedContent) => string | null;
}

/** The request for a delivery, with the headers of PinchTab and of Standard Webhooks. */
export function callbackRequest(
  claimed: ClaimedDelivery,
  { now, sign, version, redactor }: CallbackParams,
): CallbackRequest {
  const { delivery } = claimed;
  const id = deliveryId(delivery);
  const timestamp = Math.floor(now / 1_000);
  const body = JSON.stringify({ tenantId: delivery.tenant, ...subjectOf(claimed, redactor) });
  const signature = sign(delivery.tenant, { id, timestamp, body });
  return {
    body,
    headers: {
      "content-type": "application/json",
      "user-agent": `rota/${version}`,
      "X-PinchTab-Event": deliveryEvent(delivery),
      ...(delivery.batch === null ? { "X-PinchTab-Task-ID": delivery.taskId } : {}),
      "webhook-id": id,
      "webhook-timestamp": String(timestamp),
      ...(signature === null ? {} : { "webhook-signature": signature }),
    },
  };
}

/** The counts of the batch, or the task as it was when it ended. */
function subjectOf({ delivery: { batch, end }, task }: ClaimedDelivery, redactor: Redactor): object {
  if (batch !== null) return batchCompleted(batch);
  if (end === null) throw new Error("A delivery is for a task or for a batch.");
  return snapshotAt(end, task, redactor);
}
