import { RotaError } from "../../model/errors.ts";
import { DEFAULT_TENANT } from "../../model/tenant.ts";
import { FreshRead } from "../../services/fresh-read.ts";
import { Service, type ServiceOptions } from "../../services/service.ts";
import type { Storage, TenantLimits, TenantRecord, WebhookSecretRecord } from "../../storage/storage.ts";
import { SECRET_KEY_VARIABLE, type SecretBox } from "./secret-box.ts";

/** Signals can be lost: this node reads changes of other nodes at least this often. */
const POLL_MS = 30_000;
/** How many deleted tenants are remembered. Their ids are never used again, and their keys are deleted as well. */
const GONE_MAX = 10_000;

export interface TenantCatalogueOptions extends ServiceOptions {
  readonly storage: Storage;
  /** Encrypts and decrypts webhook secrets. */
  readonly box: SecretBox;
  /** Called for each tenant that is new to this process. */
  readonly onAdded: (id: string) => void;
  /** Called for each tenant that no longer exists. */
  readonly onGone: (id: string) => void;
}

/**
 * Keeps this process's copy of the tenants up to date: any node may change them at any time. The copy only saves reads; the
 * storage itself enforces the rules.
 */
export class TenantCatalogue extends Service<TenantCatalogueOptions> {
  readonly name = "tenant catalogue";
  #tenants: ReadonlyMap<string, TenantRecord> = new Map();
  #webhookSecrets: ReadonlyMap<string, readonly WebhookSecretRecord[]> = new Map();
  #hasSecond = false;
  readonly #gone = new Set<string>();
  /** Tenants whose secret could not be decrypted, for which a warning was logged. */
  readonly #locked = new Set<string>();
  readonly #reads = new FreshRead(() => this.#read());

  async tick(): Promise<number> {
    await this.read();
    return POLL_MS;
  }

  /** Resolves once this process has read every change stored before the call. */
  read(): Promise<void> {
    return this.#reads.now();
  }

  ids(): string[] {
    return this.#tenants.size === 0 ? [DEFAULT_TENANT] : [...this.#tenants.keys()];
  }

  get size(): number {
    return this.#tenants.size;
  }

  /** Whether a second enabled tenant exists. */
  get hasSecond(): boolean {
    return this.#hasSecond;
  }

  /** Undefined: the tenant is not known here, and has no limits. */
  limitsOf(id: string): TenantLimits | undefined {
    return this.#tenants.get(id)?.limits;
  }

  /** The secrets that sign its callbacks, newest first, possibly with expired ones. Empty before its first rotation. */
  webhookSecretsOf(id: string): readonly WebhookSecretRecord[] {
    return this.#webhookSecrets.get(id) ?? [];
  }

  /** A secret that signs its callbacks, as it is stored. */
  sealWebhookSecret(id: string, secret: string): string {
    return this.options.box.seal(secret, ownerOf(id));
  }

  /** Whether it is disabled, also if another node did that a moment ago. */
  async isDisabled(id: string): Promise<boolean> {
    const { storage } = this.options;
    const isCurrent = storage.capabilities.exclusive;
    const tenant = isCurrent ? this.#tenants.get(id) : await storage.tenants.get({ id });
    return tenant?.disabled ?? false;
  }

  /** The tenant is being deleted: this node accepts no more requests of it. */
  close(id: string): void {
    if (this.#gone.size >= GONE_MAX) {
      const [oldest] = this.#gone;
      if (oldest !== undefined) this.#gone.delete(oldest);
    }
    this.#gone.add(id);
  }

  /** The deletion failed before it began, or the tenant is back after a restore. */
  reopen(id: string): void {
    this.#gone.delete(id);
  }

  /** Throws `not_found` for a deleted tenant: rows written for it would have no owner. */
  checkNotGone(id: string): void {
    if (this.#gone.has(id)) throw tenantNotFound();
  }

  /** Tenants whose deletion has started, on this node or another. */
  deleting(): string[] {
    return [...this.#tenants.values()].filter(({ deleting }) => deleting).map(({ id }) => id);
  }

  async #read(): Promise<void> {
    const { storage, onAdded, onGone } = this.options;
    const before = this.#tenants;
    const [tenants, secrets] = await Promise.all([storage.tenants.list(), storage.tenants.webhookSecrets()]);
    this.#tenants = new Map(tenants.map((tenant) => [tenant.id, tenant]));
    const opened = secrets.flatMap((record) => this.#openSecret(record) ?? []);
    this.#webhookSecrets = Map.groupBy(opened, ({ tenant }) => tenant);
    this.#hasSecond = [...this.#tenants.values()].filter(({ disabled }) => !disabled).length > 1;
    for (const id of this.#tenants.keys()) {
      if (before.has(id)) continue;
      // Ids are never used twice: a deleted tenant is back because the database was restored.
      this.reopen(id);
      onAdded(id);
    }
    for (const id of this.deleting()) this.close(id);
    for (const id of before.keys()) {
      if (this.#tenants.has(id)) continue;
      this.close(id);
      onGone(id);
    }
  }

  /** Null, with a warning: this process lacks the key of the secret, so that callbacks are not signed. */
  #openSecret(record: WebhookSecretRecord): WebhookSecretRecord | null {
    const { tenant, secret: stored } = record;
    if (stored === null) return record;
    const secret = this.options.box.open(stored, ownerOf(tenant));
    if (secret !== null) return { ...record, secret };
    if (!this.#locked.has(tenant))
      this.log.warn(
        { tenant },
        `the webhook secret of a tenant was encrypted with a key that this node does not have, so its callbacks are not signed with it: give the node that ${SECRET_KEY_VARIABLE}`,
      );
    this.#locked.add(tenant);
    return null;
  }
}

function ownerOf(tenant: string): string {
  return `webhook secret\n${tenant}`;
}

export function tenantNotFound(): RotaError {
  return new RotaError("not_found", "tenant not found");
}
