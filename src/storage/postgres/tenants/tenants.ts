import { DEFAULT_TENANT } from "../../../model/tenant.ts";
import type {
  CreatedTenant,
  TenantLimits,
  TenantRecord,
  TenantStorage,
  UpdatedTenant,
} from "../../storage.ts";
import type { PostgresDatabase } from "../connection/database.ts";
import { type CancelledJson, signalCancelled } from "../tasks/cancel-these.ts";
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
  toAnswer: (tenant: TenantRecord) => Answer,
): Answer | { taken: Taken } {
  if (row === undefined) throw new Error("a change of a tenant has an answer");
  if (row.taken !== null) return { taken: row.taken };
  signalChanged(db);
  return toAnswer(toRecord(row));
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

export const TENANT_FUNCTIONS = `
create function create_tenant(p_now bigint, p_id text, p_name text, p_limits json)
returns table (taken text, saved tenant) language plpgsql as $$
declare
  v_now bigint := enter(p_now);
begin
  if exists (select 1 from tenant where id = p_id) then
    taken := 'id';
  elsif exists (select 1 from tenant where name = p_name) then
    taken := 'name';
  else
    insert into tenant (id, name, max_queued, max_inflight, max_schedules, max_sessions, max_streams, max_agents,
                        max_stored_bytes, created_at, updated_at)
    values (p_id, p_name, (p_limits ->> 'maxQueued')::integer, (p_limits ->> 'maxInflight')::integer,
            (p_limits ->> 'maxSchedules')::integer, (p_limits ->> 'maxSessions')::integer, (p_limits ->> 'maxStreams')::integer,
            (p_limits ->> 'maxAgents')::integer, (p_limits ->> 'maxStoredBytes')::bigint, v_now, v_now);
    perform keep_stored_bytes(p_id);
    saved := bound_tenant(v_now, p_id);
  end if;
  return next;
end $$;

create function update_tenant(p_now bigint, p_id text, p_name text, p_limits json)
returns table (taken text, saved tenant) language plpgsql as $$
declare
  v_now bigint := enter(p_now);
begin
  if not exists (select 1 from tenant where id = p_id and not deleting) then return; end if;
  if exists (select 1 from tenant where name = p_name and id <> p_id) then
    taken := 'name';
  else
    update tenant t
       set name = coalesce(p_name, t.name), max_queued = ${given("maxQueued", "max_queued")},
           max_inflight = ${given("maxInflight", "max_inflight")}, max_schedules = ${given("maxSchedules", "max_schedules")},
           max_sessions = ${given("maxSessions", "max_sessions")}, max_streams = ${given("maxStreams", "max_streams")}, max_agents = ${given("maxAgents", "max_agents")},
           max_stored_bytes = ${given("maxStoredBytes", "max_stored_bytes")}, updated_at = v_now
     where t.id = p_id;
    perform keep_stored_bytes(p_id);
    saved := bound_tenant(v_now, p_id);
  end if;
  return next;
end $$;

create function set_disabled(p_now bigint, p_id text, p_disabled boolean) returns setof tenant language plpgsql as $$
declare
  v_now bigint := enter(p_now);
begin
  if not exists (select 1 from tenant where id = p_id and (p_disabled or not deleting)) then return; end if;
  -- Admission does not count what waits of a tenant while that is disabled.
  update lane l set exempt = l.exempt + case when p_disabled then t.counted else -t.counted end
    from (select lane, waiting - exempt as counted from tenant_line where tenant = p_id) t
   where l.name = t.lane and exists (select 1 from tenant where id = p_id and disabled <> p_disabled);
  update tenant set disabled = p_disabled, updated_at = v_now where id = p_id;
  if found then return next bound_tenant(v_now, p_id); end if;
end $$;

-- Other bounds hold: they are copied to where they are looked at, and what its tasks waited for may be there now, or gone.
create function bound_tenant(p_now bigint, p_id text) returns tenant language plpgsql as $$
#variable_conflict use_column
declare
  v_tenant tenant;
begin
  select * into v_tenant from tenant where id = p_id;
  -- Not startable for now: nobody could be that is disabled.
  update tenant_line set max_inflight = v_tenant.max_inflight, disabled = v_tenant.disabled, startable = false
   where tenant = p_id;
  perform refresh_tenants(array[p_id]);
  perform refresh_turns(p_now, array[p_id]);
  if follow_second_tenant() then
    perform add_note('lanes', array(select name from lane));
  else
    perform add_note('lanes', array(select lane from tenant_line where tenant = p_id));
  end if;
  ${preemptAt("p_now")}
  return v_tenant;
end $$;

-- A slice of what a tenant owns, and the tenant itself with the last. What has not ended is cancelled first: so everything
-- that counts it is right again.
create function delete_tenant(p_now bigint, p_id text, p_limit integer) returns table (cancelled json, more boolean)
language plpgsql as $$
#variable_conflict use_column
declare
  v_now bigint := enter(p_now);
  v_seqs bigint[];
begin
  -- Nothing is counted meanwhile: that would leave rows behind.
  perform 1 from high_water where name = 'rollup' for update;
  -- Keys do not pass the gate: whoever makes one waits here, and finds no tenant then.
  perform 1 from tenant where id = p_id for update;
  if not found then return; end if;
  perform set_disabled(v_now, p_id, true);
  update tenant set deleting = true where id = p_id and not deleting;
  delete from api_key where tenant = p_id;
  v_seqs := array(select seq from task where tenant = p_id order by agent, seq limit p_limit);
  cancelled := cancel_these(v_now, array(
    select t.seq from task t where t.seq = any (v_seqs) and t.completed_at is null order by t.seq), 'tenant deleted');
  perform settle_moves(v_now, ${RELEASED_MAX});
  ${PREEMPT}
  perform delete_ended(v_now, v_seqs, null, null, true);
  more := cardinality(v_seqs) = p_limit or delete_other(p_id, p_limit);
  if not more then
    delete from line where tenant = p_id;
    perform forget_empty_tenants(array[p_id]);
    delete from tally where tenant = p_id;
    delete from webhook_secret where tenant = p_id;
    delete from delivery_turn where tenant = p_id;
    -- In place of the names of its agents: nodes drop all of the tenant's.
    delete from agent_change where tenant = p_id;
    insert into agent_change (seq, tenant, agent) values (nextval('agent_change_seq'), p_id, '');
    delete from tenant where id = p_id;
    perform keep_stored_bytes(p_id);
  end if;
  return next;
end $$;

-- A slice of what is not a task's; whether there may be more.
create function delete_other(p_tenant text, p_limit integer) returns boolean language plpgsql as $$
declare
  v_deleted integer;
begin
  -- The log knows a number without an entry for one of before a restore: so the number, the type and the time stay.
  update event set tenant = '', task_seqs = '{}', data = null
   where last_seq = any (array(select e.last_seq from event e where e.tenant = p_tenant limit p_limit));
  get diagnostics v_deleted = row_count;
  if v_deleted = p_limit then return true; end if;
  delete from session where id = any (array(select s.id from session s where s.tenant || '' = p_tenant limit p_limit));
  get diagnostics v_deleted = row_count;
  if v_deleted = p_limit then return true; end if;
  delete from schedule where id = any (array(select s.id from schedule s where s.tenant || '' = p_tenant limit p_limit));
  get diagnostics v_deleted = row_count;
  if v_deleted = p_limit then return true; end if;
  delete from run where id = any (array(select r.id from run r where r.tenant || '' = p_tenant limit p_limit));
  get diagnostics v_deleted = row_count;
  if v_deleted = p_limit then return true; end if;
  if delete_notifications(array(select n.seq from notification n where n.tenant = p_tenant limit p_limit)) = p_limit then
    return true;
  end if;
  delete from bulk where id = any (array(select b.id from bulk b where b.tenant = p_tenant limit p_limit));
  get diagnostics v_deleted = row_count;
  if v_deleted = p_limit then return true; end if;
  update audit_entry set subject = null, subject_salt = null where seq = any (array(
    select a.seq from audit_entry a
     where a.tenant = p_tenant and a.subject_digest is not null and a.subject is not null limit p_limit));
  get diagnostics v_deleted = row_count;
  if v_deleted = p_limit then return true; end if;
  delete from agent where tenant = p_tenant
     and agent = any (array(select a.agent from agent a where a.tenant = p_tenant limit p_limit));
  get diagnostics v_deleted = row_count;
  if v_deleted = p_limit then return true; end if;
  delete from receiver where tenant = p_tenant
     and host = any (array(select r.host from receiver r where r.tenant = p_tenant limit p_limit));
  get diagnostics v_deleted = row_count;
  if v_deleted = p_limit then return true; end if;
  delete from rollup where ctid = any (array(select r.ctid from rollup r where r.tenant = p_tenant limit p_limit));
  get diagnostics v_deleted = row_count;
  return v_deleted = p_limit;
end $$;
`;
