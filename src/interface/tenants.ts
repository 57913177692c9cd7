import type { ChangesOf, InputOf } from "../model/input/schema.ts";
import type { LIMIT_FIELDS, TENANT, TENANT_CHANGES } from "../model/input/tenant-input.ts";

/** Tenants are isolated from each other. The tenant `default` always exists. For admins. */
export interface Tenants {
  /** Throws `conflict` if a tenant with this name exists. */
  create(input: TenantInput): Promise<Tenant>;
  list(): Promise<TenantList>;
  /** Throws `not_found`, as do all that take an id. */
  get(id: string): Promise<Tenant>;
  /** A field that is left out stays; null resets a limit to its default. */
  update(id: string, changes: TenantChanges): Promise<Tenant>;
  /** Its schedules no longer fire and its tasks no longer start; running tasks end by themselves. */
  disable(id: string): Promise<Tenant>;
  enable(id: string): Promise<Tenant>;
  /** Deletes everything that it owns as well. Throws `conflict` for `default`. */
  delete(id: string): Promise<{ readonly deleted: true }>;
  /**
   * Creates a new secret that signs the tenant's callbacks, on all nodes within a second. For 24 hours the previous one signs as
   * well.
   *
   * @example
   * const { secret } = await rota.tenants.rotateWebhookSecret("ten_acme"); // whsec_…
   */
  rotateWebhookSecret(id: string): Promise<RotatedWebhookSecret>;
}

export interface RotatedWebhookSecret {
  /** Shown only here. */
  readonly secret: string;
  /** Until then the previous secret signs as well, RFC 3339; null: there was none. */
  readonly previousUntil: string | null;
}

export type TenantInput = InputOf<typeof TENANT.fields>;

/** Null: no limit. */
export type TenantLimits = { readonly [Name in keyof typeof LIMIT_FIELDS]: number | null };

export type TenantLimitsInput = Partial<TenantLimits>;

export type TenantChanges = ChangesOf<typeof TENANT_CHANGES.fields>;

export interface Tenant {
  readonly id: string;
  readonly name: string;
  readonly disabled: boolean;
  readonly limits: TenantLimits;
  /** Bytes of its tasks with their results; null: it has no `maxStoredBytes`, and Rota does not count. */
  readonly storedBytes: number | null;
  readonly createdAt: string;
  readonly updatedAt: string;
}

export interface TenantList {
  readonly tenants: readonly Tenant[];
  readonly count: number;
}
