import type { Tenant, Tenants } from "../../interface/tenants.ts";
import { RotaError } from "../../model/errors.ts";
import { quoted } from "../../model/input/field-checks.ts";
import { isTenantId, parseTenantChanges, parseTenantInput } from "../../model/input/tenant-input.ts";
import { DEFAULT_TENANT, maxAgentsOf, maxSchedulesOf, maxSessionsOf } from "../../model/tenant.ts";
import { rfc3339 } from "../../model/text/rfc3339.ts";
import type { Storage, TenantRecord } from "../../storage/storage.ts";
import { newWebhookSecret } from "../../webhooks/new-secret.ts";
import { type TenantCatalogue, tenantNotFound } from "../registries/tenant-catalogue.ts";

/** The most tenants: all of them are read whenever one changes. */
const TENANTS_MAX = 10_000;
/** How long the previous secret signs after a rotation. */
const SECRET_OVERLAP_MS = 24 * 3_600_000;
/** Tasks counted in one transaction. */
const COUNT_SLICE = 1_000;

export interface TenantsOptions {
  readonly storage: Storage;
  readonly catalogue: TenantCatalogue;
  readonly newTenantId: () => string;
  /** Whether the configuration has a secret for webhooks. */
  readonly hasConfiguredSecret: () => boolean;
  /** Resolves once the limits of agents that serve all tenants are stored for a new tenant. */
  readonly bounded: () => Promise<void>;
  /** Deletes a tenant with everything that it owns. */
  readonly erase: (tenant: string) => Promise<void>;
  /** Resumes the schedules of a tenant that were held while it was disabled. */
  readonly resume: (tenant: string) => Promise<void>;
}

/** The tenants API. */
export function createTenants(options: TenantsOptions): Tenants {
  const { storage, catalogue, newTenantId, hasConfiguredSecret, bounded, erase, resume } = options;

  /** Ignores errors: the change is stored, and a signal or the next poll reads it again. */
  async function learn(): Promise<void> {
    await catalogue.read().catch(() => {});
  }

  async function setDisabled(id: string, disabled: boolean): Promise<TenantRecord> {
    const record = isTenantId(id) ? await storage.tenants.setDisabled({ id, disabled }) : null;
    if (record === null) throw tenantNotFound();
    await learn();
    return record;
  }

  return {
    async create(input) {
      const { name, limits } = parseTenantInput(input);
      await catalogue.read();
      if (catalogue.size >= TENANTS_MAX) throw full();
      const created = await storage.tenants.create({ id: newTenantId(), name, limits });
      if (created.taken !== null) throw nameTaken(name);
      await learn();
      if (limits.maxStoredBytes !== null) await countStored(storage);
      await bounded();
      return toTenant(created.tenant);
    },

    async list() {
      const tenants = (await storage.tenants.list()).filter(({ deleting }) => !deleting).map(toTenant);
      return { tenants, count: tenants.length };
    },

    async get(id) {
      const record = isTenantId(id) ? await storage.tenants.get({ id }) : null;
      if (record === null || record.deleting) throw tenantNotFound();
      return toTenant(record);
    },

    async update(id, changes) {
      const parsed = parseTenantChanges(changes);
      const updated = isTenantId(id) ? await storage.tenants.update({ id, ...parsed }) : NOT_FOUND;
      if (!updated.found) throw tenantNotFound();
      if (updated.taken !== null) throw nameTaken(parsed.name ?? "");
      await learn();
      if ((parsed.limits?.maxStoredBytes ?? null) === null) return toTenant(updated.tenant);
      await countStored(storage);
      return toTenant((await storage.tenants.get({ id })) ?? updated.tenant);
    },

    async disable(id) {
      return toTenant(await setDisabled(id, true));
    },

    /** Resumes also if it is already enabled: the process of an earlier call may have died before it was done. */
    async enable(id) {
      const record = await setDisabled(id, false);
      await resume(id);
      return toTenant(record);
    },

    async delete(id) {
      if (id === DEFAULT_TENANT) {
        throw new RotaError("conflict", `the tenant "${id}" is built in and cannot be deleted`);
      }
      if (!isTenantId(id) || (await storage.tenants.get({ id })) === null) throw tenantNotFound();
      await erase(id);
      await learn();
      return { deleted: true };
    },

    async rotateWebhookSecret(id) {
      const secret = newWebhookSecret();
      const rotated = isTenantId(id)
        ? await storage.tenants.rotateWebhookSecret({
            id,
            secret: catalogue.sealWebhookSecret(id, secret),
            overlapMs: SECRET_OVERLAP_MS,
          })
        : NOT_FOUND;
      if (!rotated.found) throw tenantNotFound();
      await learn();
      const { previous } = rotated;
      const isSigning = previous !== null && (previous.secret !== null || hasConfiguredSecret());
      const until = isSigning ? previous.expiresAt : null;
      return { secret, previousUntil: until === null ? null : rfc3339(until) };
    },
  };
}

/** Counts tasks that were stored before counting began, in slices between which other work continues. */
async function countStored(storage: Storage): Promise<void> {
  for (let more = true; more; ) {
    ({ more } = await storage.tenants.countStored({ limit: COUNT_SLICE }));
    await new Promise((resolve) => setImmediate(resolve));
  }
}

const NOT_FOUND = { found: false } as const;

function toTenant({ createdAt, updatedAt, deleting: _, ...tenant }: TenantRecord): Tenant {
  const limits = {
    ...tenant.limits,
    maxSchedules: maxSchedulesOf(tenant),
    maxSessions: maxSessionsOf(tenant),
    maxAgents: maxAgentsOf(tenant),
  };
  return { ...tenant, limits, createdAt: rfc3339(createdAt), updatedAt: rfc3339(updatedAt) };
}

function nameTaken(name: string): RotaError {
  return new RotaError(
    "conflict",
    `there is a tenant called ${quoted(name)} already: take another \`name\``,
    {
      details: { field: "name" },
    },
  );
}

function full(): RotaError {
  return new RotaError("conflict", `there are ${TENANTS_MAX} tenants, which is the limit: delete one first`);
}
