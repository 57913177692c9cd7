import type { SignOptions } from "../../executors/executor.ts";
import type { Log } from "../../model/log.ts";
import { DEFAULT_TENANT } from "../../model/tenant.ts";
import { rfc3339 } from "../../model/text/rfc3339.ts";
import { webhookKey } from "../../model/webhook-secret.ts";
import type { WebhookSecretRecord } from "../../storage/storage.ts";
import { type SignedContent, signature } from "../../webhooks/signature.ts";

export interface TenantSignerOptions {
  /** The secrets that a tenant has; empty before its first rotation. */
  readonly secretsOf: (tenant: string) => readonly WebhookSecretRecord[];
  /** The key of the configuration; null: it has none. */
  readonly configuredKey: () => Uint8Array | null;
  /** The clock that secrets expire by. */
  readonly now: () => number;
}

/** Signs the requests sent for a tenant with the secrets of that tenant. */
export class TenantSigner {
  readonly #options: TenantSignerOptions;

  constructor(options: TenantSignerOptions) {
    this.#options = options;
  }

  /** The `webhook-signature`; null: nothing signs for this tenant. */
  sign(tenant: string, content: SignedContent, { ownSecretOnly = false }: SignOptions = {}): string | null {
    return signature(this.#keysOf(tenant, ownSecretOnly && tenant !== DEFAULT_TENANT), content);
  }

  /** Logs which tenants will have no signatures soon unless their secrets are rotated. */
  warnOfConfigured(tenants: readonly string[], log: Log): void {
    const { secretsOf, configuredKey, now } = this.#options;
    if (configuredKey() === null) return;
    const moment = now();
    const untils = tenants.flatMap((tenant) => {
      const [newest] = secretsOf(tenant);
      const until = newest?.secret === null ? (newest.expiresAt ?? 0) : 0;
      return until > moment ? [until] : [];
    });
    if (untils.length === 0) return;
    log.warn(
      { tenants: untils.length, until: rfc3339(Math.min(...untils)) },
      "webhooks of tenants are signed by the configured secret for a few days more; give each its own with `rota tenants rotate-secret`",
    );
  }

  /** Before its first rotation, the configured secret is that of the default tenant. */
  #keysOf(tenant: string, ownOnly: boolean): Uint8Array[] {
    const { secretsOf, configuredKey, now } = this.#options;
    const secrets = secretsOf(tenant);
    const configured = () => (ownOnly ? null : configuredKey());
    if (secrets.length === 0 && tenant === DEFAULT_TENANT) return present([configured()]);
    const moment = now();
    const signing = secrets.filter(({ expiresAt }) => expiresAt === null || expiresAt > moment);
    return present(signing.map(({ secret }) => (secret === null ? configured() : webhookKey(secret))));
  }
}

function present(keys: readonly (Uint8Array | null)[]): Uint8Array[] {
  return keys.filter((key) => key !== null);
}
