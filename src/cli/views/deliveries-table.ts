import type { Delivery, DeliveryStatus, DeliveryWait } from "../../model/delivery.ts";
import { oneLine, safeLines } from "../terminal/display-text.ts";
import { styled, styledState } from "../terminal/style.ts";
import { sheetLines } from "./sheet.ts";
import { tableLines } from "./table.ts";
import { shownAgo, shownMoment } from "./times.ts";

/** Deliveries as a table, in the order given. */
export function deliveriesTable(
  deliveries: readonly Delivery[],
  { now, width }: { readonly now: number; readonly width: number | undefined },
): string[] {
  return tableLines(
    [
      { title: "DELIVERY" },
      { title: "STATUS", style: (text) => styledState(text as DeliveryStatus) },
      { title: "TRIES", align: "right" },
      { title: "CREATED" },
      { title: "TASK OR BATCH" },
      { title: "URL", shrinksTo: 12 },
      { title: "ERROR", shrinksTo: 8 },
    ],
    deliveries.map(({ deliveryId, status, tries, createdAt, taskId, batchId, url, error }) => [
      deliveryId,
      status,
      String(tries),
      shownAgo(createdAt, now),
      batchId ?? taskId,
      oneLine(url),
      oneLine(error ?? ""),
    ]),
    { width },
  );
}

const WAITS: Record<DeliveryWait, string> = {
  slot: "a free slot of the tenant's share",
  host: "its turn: the host is new or fails, and gets few at a time",
  tenant_disabled: "its tenant, which is disabled",
};

/** All fields of a delivery, for people. */
export function deliverySheet(delivery: Delivery, now: number): string[] {
  const moment = (value: string | undefined) => (value === undefined ? undefined : shownMoment(value, now));
  const { batchId, responseStatus, error } = delivery;
  return sheetLines([
    ["delivery", delivery.deliveryId],
    ["status", styledState(delivery.status)],
    ["event", delivery.event],
    ["batch", batchId],
    ["task", batchId === undefined ? `${delivery.taskId} (${delivery.state})` : undefined],
    ["url", oneLine(delivery.url)],
    ["tries", String(delivery.tries)],
    ["created", moment(delivery.createdAt)],
    ["last try", moment(delivery.lastTryAt)],
    ["next try", moment(delivery.nextTryAt)],
    ["waits for", delivery.waitsFor === undefined ? undefined : WAITS[delivery.waitsFor]],
    ["answer", responseStatus === undefined ? undefined : `HTTP ${responseStatus}`],
    ["error", error === undefined ? undefined : styled("red", safeLines(error))],
  ]);
}
