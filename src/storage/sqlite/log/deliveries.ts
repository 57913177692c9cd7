import { FAILURES_MAX } from "../../../model/delivery-shares.ts";
import type { DeliveryRecord, DeliveryStorage, ListDeliveriesParams, SettledTry } from "../../storage.ts";
import type { SqliteDatabase } from "../connection/database.ts";
import type { Transaction } from "../connection/transaction.ts";
import { claimDeliveries } from "./claim-deliveries.ts";
import { DELIVERY_COLUMNS, DELIVERY_TABLES, type DeliveryRow, toDeliveryRecord } from "./delivery-row.ts";
import { type Receiver, refreshReceiver } from "./steps/receivers.ts";

/** Webhook deliveries; `addDelivery` inserts them. */
export function sqliteDeliveries(db: SqliteDatabase): DeliveryStorage {
  return {
    claim: (params) => claimDeliveries(db, params),
    async settle({ tries }) {
      await db.transactDurably((tx) => {
        for (const each of tries) settleTry(tx, each);
      });
    },
    async putBack({ claims }) {
      await db.transactDurably((tx) => {
        const putBack = tx.prepare<Receiver>(
          `update delivery set tries = tries - 1, due_at = @dueAt, last_try_at = iif(tries = 1, null, last_try_at)
            where seq = @seq and tries = @tries and due_at = @heldUntil returning tenant, host`,
        );
        for (const each of claims) {
          const receiver = putBack.get(each);
          if (receiver !== undefined) refreshReceiver(tx, receiver);
        }
      });
    },
    list: (params) => db.read(() => listDeliveries(db, params)),
    get: (params) => db.read(() => findDelivery(db, params)),
    async resend(params) {
      return db.transactDurably((tx) => {
        const found = findDelivery(db, params);
        if (found === null) return { found: false } as const;
        if (found.status === "pending") return { found: true, was: "pending" } as const;
        tx.prepare(
          `update delivery set status = 'pending', tries = 0, due_at = ?, last_try_at = null, response_status = null,
                               error = null
            where seq = ?`,
        ).run(tx.now, params.seq);
        refreshReceiver(tx, found);
        const delivery = findDelivery(db, params) as DeliveryRecord;
        return { found: true, was: null, delivery } as const;
      });
    },
  };
}

function settleTry(tx: Transaction, each: SettledTry): void {
  const receiver = tx
    .prepare<Receiver>(
      `update delivery set status = @status, due_at = @dueAt, response_status = @responseStatus, error = @error
        where seq = @seq and tries = @tries and status = 'pending' returning tenant, host`,
    )
    .get(each);
  if (receiver === undefined) return;
  tx.prepare(
    `update receiver set failures = iif(@delivered, 0, min(failures + 1, ${FAILURES_MAX}))
      where tenant = @tenant and host = @host`,
  ).run({ ...receiver, delivered: each.status === "delivered" ? 1 : 0 });
  refreshReceiver(tx, receiver);
}

function listDeliveries(
  db: SqliteDatabase,
  params: ListDeliveriesParams,
): { deliveries: DeliveryRecord[]; nextCursor: number | null } {
  const { tenant, taskId, status = null, cursor = Number.MAX_SAFE_INTEGER, limit } = params;
  // A task has few deliveries, so its index goes first.
  const [index, condition] =
    taskId !== undefined
      ? ["delivery_by_task", "d.task_seq = (select seq from task where id = @taskId)"]
      : status !== null
        ? ["delivery_by_status", "d.tenant = @tenant and d.status = @status"]
        : ["delivery_by_tenant", "d.tenant = @tenant"];
  const rows = db
    .prepare<DeliveryRow>(
      `select ${DELIVERY_COLUMNS} from ${DELIVERY_TABLES.replace("delivery d", `delivery d indexed by ${index}`)}
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
