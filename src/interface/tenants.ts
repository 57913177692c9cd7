/** Whose work it is: walls that nothing crosses. The tenant `default` is always there. For admins. */
export interface Tenants {
  /** Throws `conflict` when there is one of that name. */
  create(input: TenantInput): Promise<Tenant>;
  list(): Promise<TenantList>;
  /** Throws `not_found`, as do all that take an id. */
  get(id: string): Promise<Tenant>;
  /** What is left out stays; a limit that is null is the default again. */
  update(id: string, changes: TenantChanges): Promise<Tenant>;
  /** Nothing of it fires or starts any more; what runs ends by itself. */
  disable(id: string): Promise<Tenant>;
  enable(id: string): Promise<Tenant>;
  /** All that it owns goes with it. Throws `conflict` for `default`. */
  delete(id: string): Promise<{ readonly deleted: true }>;
  /**
   * Creates a new secret that signs the tenant's callbacks, on all nodes within a second. The previous one signs as well for 24 hours.
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

export interface TenantInput {
  readonly name: string;
  readonly limits?: TenantLimitsInput;
}

/** Null: no limit. */
export interface TenantLimits {
  /** Tasks that wait. */
  readonly maxQueued: number | null;
  /** Tasks that run, over all lanes and nodes. */
  readonly maxInflight: number | null;
  /** Schedules that are active or paused. Unless it is given: 1000, and none for the tenant `default`. */
  readonly maxSchedules: number | null;
  /** Sessions with settings, which stay until they are deleted. Default: 10000; none for the tenant `default`. */
  readonly maxSessions: number | null;
  /** Open event and notification streams, on each node. */
  readonly maxStreams: number | null;
  /** Agents that it stores; null: 1000, and 10000 of the tenant `default`. */
  readonly maxAgents: number | null;
  /** Bytes that its tasks take, as `storedBytes` counts them: beyond it new ones are refused with `quota_exceeded`. */
  readonly maxStoredBytes: number | null;
}

export type TenantLimitsInput = Partial<TenantLimits>;

export interface TenantChanges {
  readonly name?: string;
  readonly limits?: TenantLimitsInput;
}

export interface Tenant {
  readonly id: string;
  readonly name: string;
  readonly disabled: boolean;
  readonly limits: TenantLimits;
  /** What its tasks take, with their results; null: it has no `maxStoredBytes`, and nothing is counted. */
  readonly storedBytes: number | null;
  readonly createdAt: string;
  readonly updatedAt: string;
}

export interface TenantList {
  readonly tenants: readonly Tenant[];
  readonly count: number;
}
