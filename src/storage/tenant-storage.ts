/** Whose work it is, how much of it, and whether it goes on: one part of the contract in storage.ts. */

/**
 * Tenants. `DEFAULT_TENANT` is always among them. One that has work but was never created works like one without bounds, so that nothing that moves tasks asks
 * whether there is one.
 */
export interface TenantStorage {
  /** Nothing changes when the id or the name is taken: names tell tenants apart, too. */
  create(params: NewTenant): Promise<CreatedTenant>;
  get(params: { id: string }): Promise<TenantRecord | null>;
  /** By id. */
  list(): Promise<TenantRecord[]>;
  /** Changes the given fields; a tenant that is being deleted is not found. New limits do not abort running tasks. */
  update(params: { id: string; name?: string; limits?: Partial<TenantLimits> }): Promise<UpdatedTenant>;
  /** While a tenant is disabled, none of its tasks start; running ones finish, submitted ones wait. Null: there is none, or it is being deleted. */
  setDisabled(params: { id: string; disabled: boolean }): Promise<TenantRecord | null>;
  /**
   * Disables a tenant for good (`deleting`), deletes its keys, and deletes up to `limit` rows that it owns, its tasks
   * first: running attempts are fenced, and no events are published. `more`: call again. The tenant itself goes with the
   * last slice. With a `limit` of 0 it is only locked so. Nothing that it was given stays: of its events numbers, types and times are
   * left, of its audit log ids, routes and times.
   */
  delete(params: { id: string; limit: number }): Promise<DeletedTenant>;
  /**
   * Counts a slice of the tasks that were there when `maxStoredBytes` was given to their tenant, of up to `limit` tasks of any
   * tenant. Until all are counted, `storedBytes` says less than there is. `more`: call again.
   */
  countStored(params: { limit: number }): Promise<{ readonly more: boolean }>;
  /**
   * Makes `secret` the one that signs a tenant's callbacks. The previous one signs as well for `overlapMs`; any older one stops at
   * once. Before its first rotation, the default tenant has the configured secret; other tenants have none.
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

/** What a task takes beside its texts: its row, its attempts and its events, about. */
export const TASK_OVERHEAD_BYTES = 1_024;

/** Null: no bound. */
export interface TenantLimits {
  /** Waiting tasks, as far as admission counts them. */
  readonly maxQueued: number | null;
  /** Tasks in flight, over all lanes and nodes. */
  readonly maxInflight: number | null;
  /** Schedules that are active or paused; null: what `maxSchedulesOf` says. */
  readonly maxSchedules: number | null;
  /** Sessions that stay without tasks; null: what `maxSessionsOf` says. */
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
   * What its tasks take: the UTF-8 of what each was given, of its result and its error as they are stored, and
   * `TASK_OVERHEAD_BYTES`. Null: it has no `maxStoredBytes`, and nothing is counted.
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
