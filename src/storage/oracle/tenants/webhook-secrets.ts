import { DEFAULT_TENANT } from "../../../model/tenant.ts";
import type { RotatedWebhookSecret, RotateWebhookSecretParams, WebhookSecretRecord } from "../../storage.ts";
import { type OracleState, signal } from "../state.ts";

export function rotateWebhookSecret(
  state: OracleState,
  { id, secret, overlapMs }: RotateWebhookSecretParams,
): RotatedWebhookSecret {
  if (!state.tenants.has(id)) return { found: false };
  const now = state.clock.now();
  const [newest] = state.webhookSecrets.get(id) ?? [configuredOf(id)];
  const isSigning = newest !== undefined && (newest.expiresAt === null || newest.expiresAt > now);
  const previous = isSigning ? { ...newest, expiresAt: now + overlapMs } : null;
  const current = { tenant: id, secret, expiresAt: null };
  state.webhookSecrets.set(id, previous === null ? [current] : [current, previous]);
  signal(state, { kind: "tenants" });
  return { found: true, previous };
}

/** The secret before the first rotation. */
function configuredOf(tenant: string): WebhookSecretRecord | undefined {
  return tenant === DEFAULT_TENANT ? { tenant, secret: null, expiresAt: null } : undefined;
}

export function listWebhookSecrets(state: OracleState): WebhookSecretRecord[] {
  return [...state.webhookSecrets.keys()].sort().flatMap((id) => state.webhookSecrets.get(id) ?? []);
}
