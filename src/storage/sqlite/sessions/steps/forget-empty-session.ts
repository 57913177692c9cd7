import type { Transaction } from "../../connection/transaction.ts";

/** Deletes a session without tasks, unless it has settings or was reset. */
export function forgetEmptySession(tx: Transaction, id: number): void {
  tx.prepare(
    `delete from session
      where id = @id and pinned = 0 and generation = 0
        and not exists (select 1 from task where session = @id)`,
  ).run({ id });
}
