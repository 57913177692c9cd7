/** Tenants and their limits: one part of the contract in storage.ts. */

/**
 * Tenants. `DEFAULT_TENANT` always exists. A tenant that has tasks but was never created works like one without limits, so that
 * operations on tasks need not check whether their tenant exists.
 */
export interface TenantStorage {
  /** Changes nothing if the id or the name is taken: names are unique, too. */
  create(params: NewTenant): Promise<CreatedTenant>;
  get(params: { id: string }): Promise<TenantRecord | null>;
  /** By id. */
  list(): Promise<TenantRecord[]>;
  /** Changes the given fields; a tenant that is being deleted is not found. New limits do not abort running tasks. */
  update(params: { id: string; name?: string; limits?: Partial<TenantLimits> }): Promise<UpdatedTenant>;
  /**
   * While a tenant is disabled, none of its tasks start; running ones finish, submitted ones wait. Null: there is no such
   * tenant, or it is being deleted.
   */
  setDisabled(params: { id: string; disabled: boolean }): Promise<TenantRecord | null>;
  /**
   * Disables a tenant for good (`deleting`), deletes its keys, and deletes up to `limit` rows that it owns, its tasks first:
   * running attempts are fenced, and no events are published. `more`: call again. The last slice deletes the tenant itself. A
   * `limit` of 0 only disables it. No content of the tenant stays: its events keep numbers, types and times, its audit log
   * keeps ids, routes and times.
   */
  delete(params: { id: string; limit: number }): Promise<DeletedTenant>;
  /**
   * Counts tasks that existed before their tenant got `maxStoredBytes`. One call reads up to `limit` tasks of all tenants.
   * Until all are counted, `storedBytes` is too low. `more`: call again.
   */
  countStored(params: { limit: number }): Promise<{ readonly more: boolean }>;
  /**
   * Signs a tenant's callbacks with `secret` from now on. The previous secret signs as well for `overlapMs`; any older one
   * stops at once. Before its first rotation, the default tenant has the configured secret; other tenants have none.
   */
  rotateWebhookSecret(params: RotateWebhookSecretParams): Promise<RotatedWebhookSecret>;
  /** The secrets of all tenants, by tenant, the newest first. Expired ones may be among them. */
  webhookSecrets(): Promise<WebhookSecretRecord[]>;
}

export interface RotateWebhookSecretParams {
  readonly id: string;
  readonly secret: string;
  readonly overlapMs: number;
}

export type RotatedWebhookSecret =
  | { readonly found: false }
  /** `previous`: the secret that signs as well for a while; null: there was none. */
  | { readonly found: true; readonly previous: WebhookSecretRecord | null };

export interface WebhookSecretRecord {
  readonly tenant: string;
  /** Null: the one of the configuration. */
  readonly secret: string | null;
  /** Null: it signs until the next rotation. */
  readonly expiresAt: number | null;
}

/** About what a task takes beside its texts: its row, its attempts and its events. */
export const TASK_OVERHEAD_BYTES = 1_024;

/** Null: no limit. */
export interface TenantLimits {
  /** Waiting tasks, as far as admission counts them. */
  readonly maxQueued: number | null;
  /** Tasks in flight, over all lanes and nodes. */
  readonly maxInflight: number | null;
  /** Schedules that are active or paused; null: the limit of `maxSchedulesOf`. */
  readonly maxSchedules: number | null;
  /** Sessions with settings, which stay without tasks; null: the limit of `maxSessionsOf`. */
  readonly maxSessions: number | null;
  readonly maxStreams: number | null;
  /** Agents of the catalogue. */
  readonly maxAgents: number | null;
  /** What its tasks take, as `storedBytes` counts it. */
  readonly maxStoredBytes: number | null;
}

export interface NewTenant {
  readonly id: string;
  readonly name: string;
  readonly limits: TenantLimits;
}

export interface TenantRecord extends NewTenant {
  /**
   * What its tasks take: for each the stored UTF-8 of its input, result and error, and `TASK_OVERHEAD_BYTES`. Null: it has no
   * `maxStoredBytes`, and nothing is counted.
   */
  readonly storedBytes: number | null;
  readonly disabled: boolean;
  /** `delete` has begun, and has not ended yet. Each slice sets `updatedAt`. */
  readonly deleting: boolean;
  readonly createdAt: number;
  readonly updatedAt: number;
}

export type CreatedTenant =
  | { readonly taken: "id" | "name" }
  | { readonly taken: null; readonly tenant: TenantRecord };

export type UpdatedTenant =
  | { readonly found: false }
  | { readonly found: true; readonly taken: "name" }
  | { readonly found: true; readonly taken: null; readonly tenant: TenantRecord };

export type DeletedTenant =
  | { readonly found: false }
  /** The default tenant stays: nothing changed. */
  | { readonly found: true; readonly was: "default" }
  | { readonly found: true; readonly was: null; readonly more: boolean };
