import { DEFAULT_TENANT } from "../../src/model/tenant.ts";
import type { DeliveryRecord } from "../../src/storage/storage.ts";
import type { World } from "./world.ts";

/** How long a delivery is kept from others that was claimed. */
const HOLD_MS = 30_000;

export async function pendingDeliveries({ storage }: World): Promise<DeliveryRecord[]> {
  const tenants = await storage.tenants.list();
  const ids = new Set([DEFAULT_TENANT, ...tenants.filter(({ disabled }) => !disabled).map(({ id }) => id)]);
  const pages = await Promise.all(
    [...ids].map((tenant) => storage.deliveries.list({ tenant, status: "pending", limit: 10_000 })),
  );
  return pages.flatMap(({ deliveries }) => deliveries);
}

/** When the next one is due of a tenant that has none on its way: others may have to wait for that. Null: there is none. */
export async function nextDeliveryAt(world: World): Promise<number | null> {
  const pending = await pendingDeliveries(world);
  const busy = new Set(pending.filter(isOnItsWay).map(({ tenant }) => tenant));
  const due = pending.filter(({ tenant }) => !busy.has(tenant)).flatMap(({ dueAt }) => dueAt ?? []);
  return due.length === 0 ? null : Math.min(...due);
}

function isOnItsWay({ dueAt, lastTryAt }: DeliveryRecord): boolean {
  return lastTryAt !== null && dueAt === lastTryAt + HOLD_MS;
}
