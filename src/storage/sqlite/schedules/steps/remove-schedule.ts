import type { Transaction } from "../../connection/transaction.ts";

/** Deletes a schedule with all its runs. */
export function removeSchedule(tx: Transaction, id: number): void {
  tx.prepare("delete from run where schedule = ?").run(id);
  tx.prepare("delete from schedule where id = ?").run(id);
}
