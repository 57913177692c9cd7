import { RotaClient } from "../../src/client/index.ts";
import type { TenantBounds } from "./history.ts";
import { Ledger } from "./ledger.ts";
import { SESSIONS, TENANTS, WEBHOOK_SECRET } from "./settings.ts";

/** One of the tenants that share a Rota. */
export interface Tenancy {
  readonly id: string;
  readonly name: string;
  readonly bounds: TenantBounds;
  /** The API key of its users. */
  readonly key: string;
  /** What its callbacks are signed with. */
  readonly webhookSecret: string;
  /** What its users know. */
  readonly ledger: Ledger;
}

/**
 * Makes so many tenants, with keys and sessions, on a Rota that has none: from then on every request needs a key.
 */
export async function makeTenants(
  url: string,
  count: number,
): Promise<{ readonly tenancies: Tenancy[]; readonly rootKey: string }> {
  const { key: rootKey } = await new RotaClient({ url }).keys.create({ role: "admin", name: "root" });
  const root = new RotaClient({ url, key: rootKey });
  const tenancies: Tenancy[] = [];
  for (const [name, bounds] of Object.entries(TENANTS).slice(0, count)) {
    const isDefault = tenancies.length === 0;
    const id = isDefault ? name : (await root.tenants.create({ name, limits: bounds })).id;
    const { key } = await root.keys.create({ role: "operator", name: "users", tenantId: id });
    const { key: ownerKey } = await root.keys.create({ role: "tenant-admin", name: "owner", tenantId: id });
    const owner = new RotaClient({ url, key: ownerKey });
    for (const [session, changes] of Object.entries(SESSIONS)) await owner.sessions.update(session, changes);
    const webhookSecret = isDefault ? WEBHOOK_SECRET : (await root.tenants.rotateWebhookSecret(id)).secret;
    const ledger = new Ledger(isDefault ? "" : `${name}-`);
    tenancies.push({ id, name, bounds, key, webhookSecret, ledger });
  }
  return { tenancies, rootKey };
}
