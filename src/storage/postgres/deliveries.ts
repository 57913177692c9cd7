import type { DeliveryStatus } from "../../model/delivery.ts";
import type { BatchEnd, DeliveryRecord, DeliveryStorage, ListDeliveriesParams, TaskEnd } from "../storage.ts";
import type { PostgresDatabase } from "./database.ts";
import { TASK_COLUMNS, TASK_TABLES, type TaskRow, toTaskRecords } from "./task-row.ts";
import { cleanText } from "./text.ts";

/** Callbacks to be made; ending a task writes them. */
export function postgresDeliveries(db: PostgresDatabase): DeliveryStorage {
  return {
    async claim({ limit, holdMs }) {
      const rows = await db.write<DeliveryRow>({
        name: "claim_deliveries",
        text: "select * from claim_deliveries($1, $2, $3)",
        values: [limit, holdMs],
      });
      if (rows.length === 0) return [];
      const tasks = await db.read<TaskRow>({
        name: "tasks_of_deliveries",
        text: `select ${TASK_COLUMNS} from ${TASK_TABLES} where t.seq = any ($1)`,
        values: [rows.map(({ task_seq }) => task_seq)],
      });
      const bySeq = new Map((await toTaskRecords(db, tasks)).map((task) => [task.seq, task]));
      return rows.flatMap((row) => {
        const delivery = toDeliveryRecord(row);
        const task = bySeq.get(delivery.taskSeq);
        // Pruned in between, and its deliveries with it.
        return task === undefined ? [] : [{ delivery, task }];
      });
    },
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
    async nextDueAt() {
      const [next] = await db.read<{ due_at: string }>({
        name: "next_delivery",
        text: "select due_at from delivery where due_at is not null order by due_at, seq limit 1",
        values: [],
      });
      return next === undefined ? null : Number(next.due_at);
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
  const rows = await db.read<DeliveryRow>({ text, values });
  const page = rows.slice(0, params.limit).map(toDeliveryRecord);
  return {
    deliveries: page,
    nextCursor: rows.length > params.limit ? (page.at(-1)?.seq ?? null) : null,
  };
}

/**
 * Rows are compared and ordered by all columns of an index, so that no other index will do. Of one task there are few, whatever
 * their status.
 */
function listOfDeliveries(params: ListDeliveriesParams): { text: string; values: unknown[] } {
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
  const [row] = await db.read<DeliveryRow>({
    name: "get_delivery",
    text: `select ${DELIVERY_COLUMNS} from ${DELIVERY_TABLES} where d.seq = $1 and d.tenant = $2`,
    values: [seq, tenant],
  });
  return row === undefined ? null : toDeliveryRecord(row);
}

interface DeliveryRow {
  readonly seq: string;
  readonly tenant: string;
  readonly task_seq: string;
  readonly task_id: string;
  readonly url: string;
  /** These four are null when it tells of a batch, and those about the batch when it tells of a task. */
  readonly task_state: TaskEnd["state"] | null;
  readonly task_error: string | null;
  readonly task_retries: number | null;
  readonly task_attempts: number | null;
  readonly batch: string | null;
  readonly batch_created_at: string | null;
  readonly parallelism: number | null;
  readonly batch_counts: string | null;
  readonly created_at: string;
  readonly status: DeliveryStatus;
  readonly tries: number;
  readonly due_at: string | null;
  readonly last_try_at: string | null;
  readonly response_status: number | null;
  readonly error: string | null;
}

const DELIVERY_COLUMNS = `d.seq, d.tenant, d.task_seq, t.id as task_id, d.url, d.task_state, d.task_error, d.task_retries,
  d.task_attempts, b.id as batch, b.created_at as batch_created_at, b.parallelism, d.batch_counts, d.created_at, d.status,
  d.tries, d.due_at, d.last_try_at, d.response_status, d.error`;

/** A batch is there as long as one of its tasks is, and so is a delivery that tells of it. */
const DELIVERY_TABLES = `delivery d join task t on t.seq = d.task_seq
  left join batch b on b.id = t.batch and d.batch_counts is not null`;

function toDeliveryRecord(row: DeliveryRow): DeliveryRecord {
  return {
    seq: Number(row.seq),
    tenant: row.tenant,
    taskSeq: Number(row.task_seq),
    taskId: row.task_id,
    url: row.url,
    end: toTaskEnd(row),
    batch: toBatchEnd(row),
    status: row.status,
    tries: row.tries,
    createdAt: Number(row.created_at),
    dueAt: row.due_at === null ? null : Number(row.due_at),
    lastTryAt: row.last_try_at === null ? null : Number(row.last_try_at),
    responseStatus: row.response_status,
    error: row.error,
  };
}

function toTaskEnd(row: DeliveryRow): TaskEnd | null {
  const { task_state: state, task_error: error, task_retries: retryCount, task_attempts: attempts } = row;
  if (state === null || retryCount === null || attempts === null) return null;
  return { state, completedAt: Number(row.created_at), error, retryCount, attempts };
}

function toBatchEnd(row: DeliveryRow): BatchEnd | null {
  const { batch: id, parallelism, batch_counts: counts } = row;
  if (id === null || counts === null) return null;
  const times = { createdAt: Number(row.batch_created_at), completedAt: Number(row.created_at) };
  return { id, parallelism, ...times, counts: JSON.parse(counts) };
}

export const DELIVERY_FUNCTIONS = `
-- Leaves a callback to be made for each of these tasks, which have just ended, that has one; the nth ended with the nth
-- event from p_first on.
create function add_deliveries(p_first bigint, p_task_seqs bigint[]) returns void language plpgsql as $$
#variable_conflict use_column
begin
  insert into delivery (seq, tenant, task_seq, url, task_state, task_error, task_retries, task_attempts, created_at, due_at)
  select p_first + u.place - 1, t.tenant, t.seq, t.callback_url, t.resting_state, t.error, t.retry_count, t.executions,
         t.completed_at, t.completed_at
    from unnest(p_task_seqs) with ordinality u(seq, place) join task t on t.seq = u.seq
   where t.callback_url is not null and t.completed_at is not null;
end $$;

create function claim_deliveries(p_now bigint, p_limit integer, p_hold_ms bigint)
returns table (seq bigint, tenant text, task_seq bigint, task_id text, url text, task_state text, task_error text,
               task_retries integer, task_attempts integer, batch text, batch_created_at bigint, parallelism integer,
               batch_counts text, created_at bigint, status text, tries integer, due_at bigint, last_try_at bigint,
               response_status integer, error text)
language plpgsql as $$
#variable_conflict use_column
declare
  v_now bigint := enter(p_now);
  v_seqs bigint[] := array(select seq from delivery where due_at <= v_now order by due_at, seq limit p_limit);
begin
  if cardinality(v_seqs) = 0 then return; end if;
  update delivery set tries = tries + 1, due_at = v_now + p_hold_ms, last_try_at = v_now where seq = any (v_seqs);
  return query
    select ${DELIVERY_COLUMNS}
      from unnest(v_seqs) with ordinality u(seq, place)
      join (${DELIVERY_TABLES}) on d.seq = u.seq order by u.place;
end $$;

create function settle_deliveries(p_now bigint, p_tries json) returns void language plpgsql as $$
#variable_conflict use_column
begin
  perform enter(p_now);
  update delivery d
     set status = s.status, due_at = s."dueAt", response_status = s."responseStatus", error = s.error
    from json_to_recordset(p_tries)
           as s(seq bigint, tries integer, status text, "dueAt" bigint, "responseStatus" integer, error text)
   where d.seq = s.seq and d.tries = s.tries and d.status = 'pending';
end $$;

create function put_back_deliveries(p_now bigint, p_claims json) returns void language plpgsql as $$
#variable_conflict use_column
begin
  perform enter(p_now);
  update delivery d
     set tries = d.tries - 1, due_at = c."dueAt", last_try_at = case when d.tries > 1 then d.last_try_at end
    from json_to_recordset(p_claims) as c(seq bigint, tries integer, "heldUntil" bigint, "dueAt" bigint)
   where d.seq = c.seq and d.tries = c.tries and d.due_at = c."heldUntil";
end $$;

create function resend_delivery(p_now bigint, p_tenant text, p_seq bigint) returns table (was text) language plpgsql as $$
#variable_conflict use_column
declare
  v_now bigint := enter(p_now);
  v_status text;
begin
  select status into v_status from delivery where seq = p_seq and tenant = p_tenant;
  if not found then return; end if;
  if v_status = 'pending' then return query select v_status; return; end if;
  update delivery
     set status = 'pending', tries = 0, due_at = v_now, last_try_at = null, response_status = null, error = null
   where seq = p_seq;
  return query select null::text;
end $$;
`;
