import { DEFAULT_TENANT } from "../../../model/tenant.ts";
import type { RotatedWebhookSecret, RotateWebhookSecretParams, WebhookSecretRecord } from "../../storage.ts";
import type { SqliteDatabase } from "../connection/database.ts";
import type { Transaction } from "../connection/transaction.ts";

export function rotateWebhookSecret(
  db: SqliteDatabase,
  params: RotateWebhookSecretParams,
): Promise<RotatedWebhookSecret> {
  return db.transactDurably((tx) => rotate(tx, params));
}

function rotate(tx: Transaction, { id, secret, overlapMs }: RotateWebhookSecretParams): RotatedWebhookSecret {
  if (tx.prepare("select 1 from tenant where id = ?").get(id) === undefined) return { found: false };
  const before = signingBefore(tx, id);
  const previous =
    before === null ? null : { tenant: id, secret: before.secret, expiresAt: tx.now + overlapMs };
  tx.prepare("delete from webhook_secret where tenant = ?").run(id);
  const insert = tx.prepare(
    "insert into webhook_secret (tenant, is_previous, secret, expires_at) values (?, ?, ?, ?)",
  );
  insert.run(id, 0, secret, null);
  if (previous !== null) insert.run(id, 1, previous.secret, previous.expiresAt);
  tx.signal("tenants");
  return { found: true, previous };
}

/** The newest secret that signs now; null: none does. */
function signingBefore(tx: Transaction, tenant: string): Pick<WebhookSecretRecord, "secret"> | null {
  const newest = tx.prepare<SecretRow>(`${SELECT_SECRETS} where tenant = ? order by is_previous`).get(tenant);
  if (newest === undefined) return tenant === DEFAULT_TENANT ? { secret: null } : null;
  return newest.expires_at === null || newest.expires_at > tx.now ? newest : null;
}

export function listWebhookSecrets(db: SqliteDatabase): WebhookSecretRecord[] {
  const rows = db.prepare<SecretRow>(`${SELECT_SECRETS} order by tenant, is_previous`).all();
  return rows.map(({ tenant, secret, expires_at: expiresAt }) => ({ tenant, secret, expiresAt }));
}

const SELECT_SECRETS = "select tenant, secret, expires_at from webhook_secret";

interface SecretRow {
  readonly tenant: string;
  readonly secret: string | null;
  readonly expires_at: number | null;
}
