import type { ClaimedDelivery } from "../storage/storage.ts";
import { deliveryId } from "./delivery-id.ts";
import { signature } from "./signature.ts";
import { snapshotAt } from "./snapshot.ts";

export interface CallbackRequest {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** What is sent to tell of a task's end: its snapshot, with the headers of PinchTab and of Standard Webhooks. */
export function callbackRequest(
  { delivery, task }: ClaimedDelivery,
  { now, key, version }: { now: number; key: Uint8Array | null; version: string },
): CallbackRequest {
  const id = deliveryId(delivery);
  const timestamp = Math.floor(now / 1_000);
  const body = JSON.stringify(snapshotAt(delivery.end, task));
  return {
    body,
    headers: {
      "content-type": "application/json",
      "user-agent": `rota/${version}`,
      // One name for every end, as PinchTab has it: `state` in the body says which.
      "X-PinchTab-Event": "task.completed",
      "X-PinchTab-Task-ID": delivery.taskId,
      "webhook-id": id,
      "webhook-timestamp": String(timestamp),
      ...(key === null ? {} : { "webhook-signature": signature(key, { id, timestamp, body }) }),
    },
  };
}
