import { TASK_OVERHEAD_BYTES } from "../../../storage.ts";
import type { SqliteDatabase } from "../../connection/database.ts";
import type { Transaction } from "../../connection/transaction.ts";

/** The size of a row of `task`; `row`: its alias in the statement. */
function bytesOf(row: string): string {
  return `(${TASK_OVERHEAD_BYTES} + octet_length(${row}.spec) + coalesce(octet_length(${row}.result), 0)
           + coalesce(octet_length(${row}.error), 0))`;
}

function add(bytes: string, row: string): string {
  return `update stored_bytes set bytes = bytes + ${bytes}
           where tenant = ${row}.tenant and (counted_to is null or counted_to >= ${row}.seq);`;
}

/** These triggers exist only while some tenant has `maxStoredBytes`, so that they cost nothing otherwise. */
const TRIGGERS = {
  count_stored_task: `after insert on task begin ${add(bytesOf("new"), "new")} end`,
  count_changed_task: `after update of spec, result, error on task begin
    ${add(`${bytesOf("new")} - ${bytesOf("old")}`, "new")} end`,
  count_deleted_task: `after delete on task begin ${add(`-${bytesOf("old")}`, "old")} end`,
};

/** Starts or stops counting the size of a tenant's tasks. `countStored` counts the tasks that exist already. */
export function keepStoredBytes(tx: Transaction, tenant: string, isKept: boolean): void {
  if (isKept) tx.prepare("insert or ignore into stored_bytes (tenant) values (?)").run(tenant);
  else tx.prepare("delete from stored_bytes where tenant = ?").run(tenant);
  const isNeeded = isAnyKept(tx.db);
  for (const [name, trigger] of Object.entries(TRIGGERS)) {
    tx.prepare(
      isNeeded ? `create trigger if not exists ${name} ${trigger}` : `drop trigger if exists ${name}`,
    ).run();
  }
}

export function isAnyKept(db: SqliteDatabase): boolean {
  return db.prepare("select 1 from stored_bytes limit 1").get() !== undefined;
}

/** Counts up to `limit` tasks that existed before counting started. */
export function countStored(tx: Transaction, limit: number): { readonly more: boolean } {
  const next = tx
    .prepare<{ tenant: string; is_recount: 0 | 1; counted_to: number }>(
      "select tenant, is_recount, counted_to from stored_bytes where counted_to is not null limit 1",
    )
    .get();
  if (next === undefined) return { more: false };
  const { tenant, is_recount, counted_to } = next;
  const slice = tx
    .prepare<{ tasks: number; last: number | null; bytes: number }>(
      `select count(*) as tasks, max(seq) as last, coalesce(sum(bytes), 0) as bytes
         from (select seq, iif(tenant = ?, ${bytesOf("t")}, 0) as bytes from task t where seq > ? order by seq limit +?)`,
    )
    .get(tenant, counted_to, limit);
  const countedTo = slice?.tasks === limit ? slice.last : null;
  tx.prepare(
    "update stored_bytes set bytes = bytes + ?, counted_to = ? where tenant = ? and is_recount = ?",
  ).run(slice?.bytes ?? 0, countedTo, tenant, is_recount);
  return { more: countedTo !== null || isCounting(tx.db) };
}

/** Whether `countStored` still has tasks to count. */
export function isCounting(db: SqliteDatabase): boolean {
  return db.prepare("select 1 from stored_bytes where counted_to is not null limit 1").get() !== undefined;
}
