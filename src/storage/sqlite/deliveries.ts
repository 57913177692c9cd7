import type { DeliveryStatus } from "../../model/delivery.ts";
import type {
  ClaimedDelivery,
  DeliveryRecord,
  DeliveryStorage,
  ListDeliveriesParams,
  TaskEnd,
} from "../storage.ts";
import type { SqliteDatabase } from "./database.ts";
import { TASK_COLUMNS, type TaskRow, taskTables, toTaskRecord } from "./task-row.ts";

/** Callbacks to be made; `addDelivery` writes them. */
export function sqliteDeliveries(db: SqliteDatabase): DeliveryStorage {
  return {
    async claim({ limit, holdMs }) {
      const claimed = db.write((now) => claimDue(db, { limit, now, until: now + holdMs }));
      // The ends they tell of may have been written a moment ago, by a call that does not wait for the disk.
      if (claimed.length > 0) await db.durable();
      return claimed;
    },
    async settle({ tries }) {
      db.write(() => {
        const settle = db.prepare(
          `update delivery set status = @status, due_at = @dueAt, response_status = @responseStatus, error = @error
            where seq = @seq and tries = @tries and status = 'pending'`,
        );
        for (const each of tries) settle.run(each);
      });
      await db.durable();
    },
    async putBack({ claims }) {
      db.write(() => {
        const putBack = db.prepare(
          `update delivery set tries = tries - 1, due_at = @dueAt, last_try_at = iif(tries = 1, null, last_try_at)
            where seq = @seq and tries = @tries and due_at = @heldUntil`,
        );
        for (const each of claims) putBack.run(each);
      });
      await db.durable();
    },
    async nextDueAt() {
      const next = db
        .prepare<{ due_at: number }>(
          "select due_at from delivery where due_at is not null order by due_at, seq limit 1",
        )
        .get();
      return next?.due_at ?? null;
    },
    list: (params) => db.read(() => listDeliveries(db, params)),
    get: (params) => db.read(() => findDelivery(db, params)),
    async resend(params) {
      const resent = db.write((now) => {
        const found = findDelivery(db, params);
        if (found === null) return { found: false } as const;
        if (found.status === "pending") return { found: true, was: "pending" } as const;
        db.prepare(
          `update delivery set status = 'pending', tries = 0, due_at = ?, last_try_at = null, response_status = null,
                               error = null
            where seq = ?`,
        ).run(now, params.seq);
        const delivery = findDelivery(db, params) as DeliveryRecord;
        return { found: true, was: null, delivery } as const;
      });
      await db.durable();
      return resent;
    },
  };
}

function claimDue(
  db: SqliteDatabase,
  { limit, now, until }: { limit: number; now: number; until: number },
): ClaimedDelivery[] {
  const due = db
    .prepare<DeliveryRow>(
      `select ${DELIVERY_COLUMNS} from ${DELIVERY_TABLES} where d.due_at <= ? order by d.due_at, d.seq limit +?`,
    )
    .all(now, limit);
  const hold = db.prepare("update delivery set tries = tries + 1, due_at = ?, last_try_at = ? where seq = ?");
  const findTask = db.prepare<TaskRow>(`select ${TASK_COLUMNS} from ${taskTables()} where t.seq = ?`);
  return due.map((row) => {
    hold.run(until, now, row.seq);
    const held = { ...row, tries: row.tries + 1, due_at: until, last_try_at: now };
    return {
      delivery: toDeliveryRecord(held),
      task: toTaskRecord(db, findTask.get(row.task_seq) as TaskRow),
    };
  });
}

function listDeliveries(
  db: SqliteDatabase,
  params: ListDeliveriesParams,
): { deliveries: DeliveryRecord[]; nextCursor: number | null } {
  const { tenant, taskId, status = null, cursor = Number.MAX_SAFE_INTEGER, limit } = params;
  // Of one task there are few, whatever their status.
  const [index, condition] =
    taskId !== undefined
      ? ["delivery_by_task", "d.task_seq = (select seq from task where id = @taskId)"]
      : status !== null
        ? ["delivery_by_status", "d.tenant = @tenant and d.status = @status"]
        : ["delivery_by_tenant", "d.tenant = @tenant"];
  const rows = db
    .prepare<DeliveryRow>(
      `select ${DELIVERY_COLUMNS} from delivery d indexed by ${index} join task t on t.seq = d.task_seq
        where ${condition} and d.tenant = @tenant and (@status is null or d.status = @status) and d.seq < @cursor
        order by d.seq desc limit +@page`,
    )
    .all({ tenant, taskId, status, cursor, page: limit + 1 });
  const page = rows.slice(0, params.limit);
  return {
    deliveries: page.map(toDeliveryRecord),
    nextCursor: rows.length > params.limit ? (page.at(-1)?.seq ?? null) : null,
  };
}

function findDelivery(
  db: SqliteDatabase,
  { tenant, seq }: { tenant: string; seq: number },
): DeliveryRecord | null {
  const row = db
    .prepare<DeliveryRow>(
      `select ${DELIVERY_COLUMNS} from ${DELIVERY_TABLES} where d.seq = ? and d.tenant = ?`,
    )
    .get(seq, tenant);
  return row === undefined ? null : toDeliveryRecord(row);
}

interface DeliveryRow {
  readonly seq: number;
  readonly tenant: string;
  readonly task_seq: number;
  readonly task_id: string;
  readonly url: string;
  readonly batch: string | null;
  /** These are null where there is a batch. */
  readonly task_state: TaskEnd["state"] | null;
  readonly task_error: string | null;
  readonly task_retries: number | null;
  readonly task_attempts: number | null;
  readonly created_at: number;
  readonly status: DeliveryStatus;
  readonly tries: number;
  readonly due_at: number | null;
  readonly last_try_at: number | null;
  readonly response_status: number | null;
  readonly error: string | null;
}

const DELIVERY_COLUMNS = `d.seq, d.tenant, d.task_seq, t.id as task_id, d.url, d.batch, d.task_state, d.task_error, d.task_retries,
  d.task_attempts, d.created_at, d.status, d.tries, d.due_at, d.last_try_at, d.response_status, d.error`;

const DELIVERY_TABLES = "delivery d join task t on t.seq = d.task_seq";

function toDeliveryRecord(row: DeliveryRow): DeliveryRecord {
  return {
    seq: row.seq,
    tenant: row.tenant,
    taskSeq: row.task_seq,
    taskId: row.task_id,
    url: row.url,
    end:
      row.task_state === null
        ? null
        : {
            state: row.task_state,
            completedAt: row.created_at,
            error: row.task_error,
            retryCount: row.task_retries ?? 0,
            attempts: row.task_attempts ?? 0,
          },
    batch: row.batch === null ? null : JSON.parse(row.batch),
    status: row.status,
    tries: row.tries,
    createdAt: row.created_at,
    dueAt: row.due_at,
    lastTryAt: row.last_try_at,
    responseStatus: row.response_status,
    error: row.error,
  };
}
