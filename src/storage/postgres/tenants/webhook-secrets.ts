import { DEFAULT_TENANT } from "../../../model/tenant.ts";
import type { RotatedWebhookSecret, RotateWebhookSecretParams, WebhookSecretRecord } from "../../storage.ts";
import type { PostgresDatabase } from "../connection/database.ts";

export async function rotateWebhookSecret(
  db: PostgresDatabase,
  { id, secret, overlapMs }: RotateWebhookSecretParams,
): Promise<RotatedWebhookSecret> {
  const rows = await db.write<SecretRow>({
    name: "rotate_webhook_secret",
    text: "select * from rotate_webhook_secret($1, $2, $3, $4)",
    values: [id, secret, overlapMs],
  });
  if (rows.length === 0) return { found: false };
  db.signal({ kind: "tenants" });
  const previous = rows.find(({ expires_at }) => expires_at !== null);
  return { found: true, previous: previous === undefined ? null : toRecord(previous) };
}

export async function listWebhookSecrets(db: PostgresDatabase): Promise<WebhookSecretRecord[]> {
  const rows = await db.read<SecretRow>({
    name: "webhook_secrets",
    text: "select tenant, secret, expires_at from webhook_secret order by tenant, is_previous",
    values: [],
  });
  return rows.map(toRecord);
}

interface SecretRow {
  readonly tenant: string;
  readonly secret: string | null;
  readonly expires_at: string | null;
}

function toRecord({ tenant, secret, expires_at }: SecretRow): WebhookSecretRecord {
  return { tenant, secret, expiresAt: expires_at === null ? null : Number(expires_at) };
}

export const WEBHOOK_SECRET_FUNCTIONS = `
-- Returns the secret that signs from now on; no row: there is no such tenant.
create function rotate_webhook_secret(p_now bigint, p_tenant text, p_secret text, p_overlap_ms bigint)
returns setof webhook_secret language plpgsql as $$
declare
  v_now bigint := take_write_lock(p_now);
  v_newest webhook_secret;
begin
  if not exists (select 1 from tenant where id = p_tenant) then return; end if;
  select * into v_newest from webhook_secret where tenant = p_tenant order by is_previous limit 1;
  if not found and p_tenant = '${DEFAULT_TENANT}' then
    -- Until now the configured secret signed.
    v_newest := row(p_tenant, true, null, v_now + 1)::webhook_secret;
  end if;
  delete from webhook_secret where tenant = p_tenant;
  return query insert into webhook_secret values (p_tenant, false, p_secret, null) returning *;
  if v_newest.tenant is not null and coalesce(v_newest.expires_at > v_now, true) then
    return query insert into webhook_secret values (p_tenant, true, v_newest.secret, v_now + p_overlap_ms) returning *;
  end if;
end $$;
`;
