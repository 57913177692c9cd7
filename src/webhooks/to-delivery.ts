import type { Delivery, DeliveryEvent, DeliveryWait } from "../model/delivery.ts";
import { rfc3339 } from "../model/text/rfc3339.ts";
import type { DeliveryRecord } from "../storage/storage.ts";
import { deliveryId } from "./delivery-id.ts";

/** The public view of a delivery at this time. */
export function toDelivery(record: DeliveryRecord, moment: { now: number; isDisabled: boolean }): Delivery {
  const waitsFor = waitOf(record, moment);
  return {
    deliveryId: deliveryId(record),
    event: deliveryEvent(record),
    ...(record.batch === null ? {} : { batchId: record.batch.id }),
    taskId: record.taskId,
    url: record.url,
    ...(record.end === null ? {} : { state: record.end.state }),
    status: record.status,
    tries: record.tries,
    createdAt: rfc3339(record.createdAt),
    ...(record.dueAt === null ? {} : { nextTryAt: rfc3339(record.dueAt) }),
    ...(waitsFor === null ? {} : { waitsFor }),
    ...(record.lastTryAt === null ? {} : { lastTryAt: rfc3339(record.lastTryAt) }),
    ...(record.responseStatus === null ? {} : { responseStatus: record.responseStatus }),
    ...(record.error === null ? {} : { error: record.error }),
  };
}

function waitOf(
  { dueAt, hostProven }: DeliveryRecord,
  { now, isDisabled }: { now: number; isDisabled: boolean },
): DeliveryWait | null {
  if (dueAt === null || dueAt > now) return null;
  if (isDisabled) return "tenant_disabled";
  return hostProven ? "slot" : "host";
}

/** The event of a delivery. As in PinchTab, every end of a task has the same name: `state` says which end. */
export function deliveryEvent({ batch }: Pick<DeliveryRecord, "batch">): DeliveryEvent {
  return batch === null ? "task.completed" : "batch.completed";
}
