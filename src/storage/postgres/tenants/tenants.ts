import { DEFAULT_TENANT } from "../../../model/tenant.ts";
import type {
  CreatedTenant,
  TenantLimits,
  TenantRecord,
  TenantStorage,
  UpdatedTenant,
} from "../../storage.ts";
import type { PostgresDatabase } from "../connection/database.ts";
import { readSql } from "../connection/sql-file.ts";
import { type CancelledJson, signalCancelled } from "../tasks/cancel-open-tasks.ts";
import { PREEMPT, preemptAt } from "../tasks/preempt-tasks.ts";
import { RELEASED_MAX } from "../tasks/settle-moves.ts";
import { listWebhookSecrets, rotateWebhookSecret } from "./webhook-secrets.ts";

export function postgresTenants(db: PostgresDatabase): TenantStorage {
  return {
    async create({ id, name, limits }) {
      const [row] = await db.write<TenantRow & { taken: "id" | "name" | null }>({
        name: "create_tenant",
        text: `select taken, (saved).*, ${STORED_BYTES} from create_tenant($1, $2, $3, $4)`,
        values: [id, name, JSON.stringify(limits)],
      });
      return answered(db, row, (tenant): CreatedTenant => ({ taken: null, tenant }));
    },
    async get({ id }) {
      const [row] = await db.read<TenantRow>({
        name: "get_tenant",
        text: `${SELECT_TENANTS} where t.id = $1`,
        values: [id],
      });
      return row === undefined ? null : toRecord(row);
    },
    async list() {
      const rows = await db.read<TenantRow>({
        name: "list_tenants",
        text: `${SELECT_TENANTS} order by t.id`,
        values: [],
      });
      return rows.map(toRecord);
    },
    async update({ id, name = null, limits = {} }) {
      const [row] = await db.write<TenantRow & { taken: "name" | null }>({
        name: "update_tenant",
        text: `select taken, (saved).*, ${STORED_BYTES} from update_tenant($1, $2, $3, $4)`,
        values: [id, name, JSON.stringify(limits)],
      });
      if (row === undefined) return { found: false };
      const answer = answered(db, row, (tenant): UpdatedTenant => ({ found: true, taken: null, tenant }));
      return { found: true, ...answer };
    },
    async setDisabled({ id, disabled }) {
      const [row] = await db.write<TenantRow>({
        name: "set_disabled",
        text: `select (saved).*, ${STORED_BYTES} from set_disabled($1, $2, $3) saved where not (saved).deleting`,
        values: [id, disabled],
      });
      if (row === undefined) return null;
      signalChanged(db);
      return toRecord(row);
    },
    async delete({ id, limit }) {
      if (id === DEFAULT_TENANT) return { found: true, was: "default" };
      const [row] = await db.write<{ cancelled: CancelledJson[]; more: boolean }>({
        name: "delete_tenant",
        text: "select * from delete_tenant($1, $2, $3)",
        values: [id, limit],
      });
      if (row === undefined) return { found: false };
      signalCancelled(db, row.cancelled);
      signalChanged(db);
      db.signal({ kind: "keys" });
      if (!row.more) db.signal({ kind: "agents" });
      return { found: true, was: null, more: row.more };
    },
    async countStored({ limit }) {
      const [row] = await db.write<{ more: boolean }>({
        name: "count_stored",
        text: "select count_stored($1, $2) as more",
        values: [limit],
      });
      return { more: row?.more === true };
    },
    rotateWebhookSecret: (params) => rotateWebhookSecret(db, params),
    webhookSecrets: () => listWebhookSecrets(db),
  };
}

/** The changed tenant, or why nothing changed. */
function answered<Taken extends string, Answer>(
  db: PostgresDatabase,
  row: (TenantRow & { taken: Taken | null }) | undefined,
  toResult: (tenant: TenantRecord) => Answer,
): Answer | { taken: Taken } {
  if (row === undefined) throw new Error("a change of a tenant has an answer");
  if (row.taken !== null) return { taken: row.taken };
  signalChanged(db);
  return toResult(toRecord(row));
}

function signalChanged(db: PostgresDatabase): void {
  db.signal({ kind: "tenants" });
  db.signal({ kind: "work" });
  db.signal({ kind: "deliveries" });
}

interface TenantRow {
  readonly id: string;
  readonly name: string;
  readonly disabled: boolean;
  readonly deleting: boolean;
  readonly max_queued: number | null;
  readonly max_inflight: number | null;
  readonly max_schedules: number | null;
  readonly max_sessions: number | null;
  readonly max_streams: number | null;
  readonly max_agents: number | null;
  readonly max_stored_bytes: string | null;
  readonly stored_bytes: string | null;
  readonly created_at: string;
  readonly updated_at: string;
}

function toRecord(row: TenantRow): TenantRecord {
  return {
    id: row.id,
    name: row.name,
    disabled: row.disabled,
    deleting: row.deleting,
    limits: {
      maxQueued: row.max_queued,
      maxInflight: row.max_inflight,
      maxSchedules: row.max_schedules,
      maxSessions: row.max_sessions,
      maxStreams: row.max_streams,
      maxAgents: row.max_agents,
      maxStoredBytes: row.max_stored_bytes === null ? null : Number(row.max_stored_bytes),
    },
    storedBytes: row.stored_bytes === null ? null : Number(row.stored_bytes),
    createdAt: Number(row.created_at),
    updatedAt: Number(row.updated_at),
  };
}

/** A limit as given in p_limits; if not given, as it was. */
function given(limit: keyof TenantLimits, column: string): string {
  return `case when p_limits::jsonb ? '${limit}' then (p_limits ->> '${limit}')::bigint else t.${column} end`;
}

/** The stored bytes of the tenant in `saved`; null: they are not counted. */
const STORED_BYTES = `(select s.bytes from stored_bytes s where s.tenant = (saved).id and not s.is_recount) as stored_bytes`;

const SELECT_TENANTS = `
  select t.*, s.bytes as stored_bytes
    from tenant t left join stored_bytes s on s.tenant = t.id and not s.is_recount`;

export const TENANT_FUNCTIONS = readSql(new URL("./tenants.sql", import.meta.url), {
  GIVEN_MAX_QUEUED: given("maxQueued", "max_queued"),
  GIVEN_MAX_INFLIGHT: given("maxInflight", "max_inflight"),
  GIVEN_MAX_SCHEDULES: given("maxSchedules", "max_schedules"),
  GIVEN_MAX_SESSIONS: given("maxSessions", "max_sessions"),
  GIVEN_MAX_STREAMS: given("maxStreams", "max_streams"),
  GIVEN_MAX_AGENTS: given("maxAgents", "max_agents"),
  GIVEN_MAX_STORED_BYTES: given("maxStoredBytes", "max_stored_bytes"),
  PREEMPT_AT_P_NOW: preemptAt("p_now"),
  RELEASED_MAX,
  PREEMPT,
});
