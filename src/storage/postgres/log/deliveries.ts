import { FAILURES_MAX } from "../../../model/delivery-shares.ts";
import type { DeliveryRecord, DeliveryStorage, ListDeliveriesParams } from "../../storage.ts";
import type { PostgresDatabase } from "../connection/database.ts";
import { cleanText } from "../connection/text.ts";
import { claimDeliveries } from "./claim-deliveries.ts";
import { DELIVERY_COLUMNS, DELIVERY_TABLES, type DeliveryRow, toDeliveryRecord } from "./delivery-row.ts";

/** Webhook deliveries. The end of a task or a batch writes them. */
export function postgresDeliveries(db: PostgresDatabase): DeliveryStorage {
  return {
    claim: (params) => claimDeliveries(db, params),
    async settle({ tries }) {
      await db.write({
        name: "settle_deliveries",
        text: "select settle_deliveries($1, $2)",
        values: [JSON.stringify(tries.map(({ error, ...each }) => ({ ...each, error: clean(error) })))],
      });
    },
    async putBack({ claims }) {
      await db.write({
        name: "put_back_deliveries",
        text: "select put_back_deliveries($1, $2)",
        values: [JSON.stringify(claims)],
      });
    },
    list: (params) => listDeliveries(db, params),
    get: (params) => findDelivery(db, params),
    async resend(params) {
      const [row] = await db.write<{ was: "pending" | null }>({
        name: "resend_delivery",
        text: "select * from resend_delivery($1, $2, $3)",
        values: [params.tenant, params.seq],
      });
      if (row === undefined) return { found: false };
      if (row.was !== null) return { found: true, was: row.was };
      const delivery = await findDelivery(db, params);
      return delivery === null ? { found: false } : { found: true, was: null, delivery };
    },
  };
}

function clean(text: string | null): string | null {
  return text === null ? null : cleanText(text);
}

async function listDeliveries(
  db: PostgresDatabase,
  params: ListDeliveriesParams,
): Promise<{ deliveries: DeliveryRecord[]; nextCursor: number | null }> {
  const { text, values } = listOfDeliveries(params);
  const rows = await db.readDurably<DeliveryRow>({ text, values });
  const page = rows.slice(0, params.limit).map(toDeliveryRecord);
  return {
    deliveries: page,
    nextCursor: rows.length > params.limit ? (page.at(-1)?.seq ?? null) : null,
  };
}

/**
 * Compares and orders rows by all columns of an index, so that the planner cannot use another. One task has few deliveries,
 * whatever their status.
 */
export function listOfDeliveries(params: ListDeliveriesParams): { text: string; values: unknown[] } {
  const { tenant, taskId, status, cursor = Number.MAX_SAFE_INTEGER } = params;
  const values: unknown[] = [tenant, cursor];
  const bind = (value: unknown) => `$${values.push(value)}`;
  const columns: (readonly [column: string, value: string])[] =
    taskId !== undefined
      ? [["d.task_seq", `(select i.seq from task i where i.id = ${bind(taskId)})`]]
      : status !== undefined
        ? [
            ["d.tenant", "$1"],
            ["d.status", bind(status)],
          ]
        : [["d.tenant", "$1"]];
  const row = [...columns.map(([column]) => column), "d.seq"];
  const rowAt = (seq: string) => `(${[...columns.map(([, value]) => value), seq].join(", ")})`;
  const conditions = [
    `(${row.join(", ")}) < ${rowAt("$2")} and (${row.join(", ")}) > ${rowAt("0")}`,
    "(d.tenant = $1) is true",
    ...(taskId === undefined || status === undefined ? [] : [`(d.status = ${bind(status)}) is true`]),
  ];
  const page = `
    select d.* from delivery d where ${conditions.join(" and ")}
     order by ${row.map((column) => `${column} desc`).join(", ")} limit ${params.limit + 1}`;
  return {
    text: `select ${DELIVERY_COLUMNS} from ${DELIVERY_TABLES.replace("delivery d", `(${page}) d`)} order by d.seq desc`,
    values,
  };
}

async function findDelivery(
  db: PostgresDatabase,
  { tenant, seq }: { tenant: string; seq: number },
): Promise<DeliveryRecord | null> {
  const [row] = await db.readDurably<DeliveryRow>({
    name: "get_delivery",
    text: `select ${DELIVERY_COLUMNS} from ${DELIVERY_TABLES} where d.seq = $1 and d.tenant = $2`,
    values: [seq, tenant],
  });
  return row === undefined ? null : toDeliveryRecord(row);
}

export const DELIVERY_FUNCTIONS = `
-- Adds a webhook delivery for each of these tasks, which have just ended, that has a callback URL. The nth task ended with
-- the nth event from p_first on.
create function add_deliveries(p_now bigint, p_first bigint, p_task_seqs bigint[]) returns void language plpgsql as $$
#variable_conflict use_column
declare
  v_tenants text[];
  v_hosts text[];
begin
  with added as (
    insert into delivery (seq, tenant, task_seq, url, task_state, task_error, task_retries, task_attempts, created_at, due_at)
    select p_first + u.ordinal - 1, t.tenant, t.seq, t.callback_url, t.resting_state, t.error, t.retry_count, t.executions,
           t.completed_at, t.completed_at
      from unnest(p_task_seqs) with ordinality u(seq, ordinal)
     cross join lateral (select * from task where seq = u.seq offset 0) t
     where t.callback_url is not null and t.completed_at is not null
    returning tenant, host)
  select array_agg(tenant), array_agg(host) into v_tenants, v_hosts from added;
  if v_tenants is not null then perform refresh_receivers(p_now, v_tenants, v_hosts); end if;
end $$;

create function settle_deliveries(p_now bigint, p_tries json) returns void language plpgsql as $$
#variable_conflict use_column
declare
  v_now bigint := take_write_lock(p_now);
  v_try record;
  v_tenant text;
  v_host text;
  v_tenants text[] := '{}';
  v_hosts text[] := '{}';
begin
  for v_try in
    select * from json_to_recordset(p_tries)
      as s(seq bigint, tries integer, status text, "dueAt" bigint, "responseStatus" integer, error text)
  loop
    update delivery
       set status = v_try.status, due_at = v_try."dueAt", response_status = v_try."responseStatus", error = v_try.error
     where seq = v_try.seq and tries = v_try.tries and status = 'pending'
    returning tenant, host into v_tenant, v_host;
    continue when not found;
    update receiver
       set failures = case when v_try.status = 'delivered' then 0 else least(failures + 1, ${FAILURES_MAX}) end
     where tenant = v_tenant and host = v_host;
    v_tenants := v_tenants || v_tenant;
    v_hosts := v_hosts || v_host;
  end loop;
  perform refresh_receivers(v_now, v_tenants, v_hosts);
end $$;

create function put_back_deliveries(p_now bigint, p_claims json) returns void language plpgsql as $$
#variable_conflict use_column
declare
  v_now bigint := take_write_lock(p_now);
  v_tenants text[];
  v_hosts text[];
begin
  with put_back as (
    update delivery d
       set tries = d.tries - 1, due_at = c."dueAt", last_try_at = case when d.tries > 1 then d.last_try_at end
      from json_to_recordset(p_claims) as c(seq bigint, tries integer, "heldUntil" bigint, "dueAt" bigint)
     cross join lateral (select ctid as address from delivery where seq = c.seq offset 0) a
     where d.ctid = a.address and d.tries = c.tries and d.due_at = c."heldUntil"
    returning d.tenant, d.host)
  select array_agg(tenant), array_agg(host) into v_tenants, v_hosts from put_back;
  if v_tenants is not null then perform refresh_receivers(v_now, v_tenants, v_hosts); end if;
end $$;

create function resend_delivery(p_now bigint, p_tenant text, p_seq bigint) returns table (was text) language plpgsql as $$
#variable_conflict use_column
declare
  v_now bigint := take_write_lock(p_now);
  v_status text;
  v_host text;
begin
  select status, host into v_status, v_host from delivery where seq = p_seq and tenant = p_tenant;
  if not found then return; end if;
  perform flush_with_commit();
  if v_status = 'pending' then return query select v_status; return; end if;
  update delivery
     set status = 'pending', tries = 0, due_at = v_now, last_try_at = null, response_status = null, error = null
   where seq = p_seq;
  perform refresh_receivers(v_now, array[p_tenant], array[v_host]);
  return query select null::text;
end $$;
`;
