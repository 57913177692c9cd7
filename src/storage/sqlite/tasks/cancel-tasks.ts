import {
  isTerminal,
  type TaskState,
  type TerminalState,
  type WaitingState,
} from "../../../model/task-state.ts";
import type { CancelledTask, EndedTask } from "../../storage.ts";
import type { SqliteDatabase } from "../connection/database.ts";
import { Ledger } from "../counters/ledger.ts";
import { endTask } from "./end-attempt.ts";
import { endWaitingTask, WAITING_COLUMNS, type WaitingTask } from "./end-waiting-task.ts";
import { LEASE_COLUMNS, type Lease } from "./lease.ts";
import { preemptTasks } from "./preempt-tasks.ts";
import { settleMoves } from "./settle-moves.ts";

/** Ends tasks, waiting or running, and fences the attempts of those that run. */
export async function cancelTasks(
  db: SqliteDatabase,
  params: { tenant: string; ids: readonly string[]; error: string | null },
): Promise<CancelledTask[]> {
  const cancelled = db.write((now) => cancelAll(db, params, now));
  await db.durable();
  return cancelled;
}

/** The same within a transaction. */
export function cancelAll(
  db: SqliteDatabase,
  params: { tenant: string; ids: readonly string[]; error: string | null },
  now: number,
): CancelledTask[] {
  const ledger = new Ledger(db);
  const answers = params.ids.map((id) => cancelTask(db, ledger, { ...params, id, now }));
  settleMoves(db, ledger, now);
  preemptTasks(db, ledger, now);
  ledger.save();
  tellOfCancelled(
    db,
    answers.filter((answer) => answer.found && answer.was === null),
  );
  return answers;
}

export function tellOfCancelled(db: SqliteDatabase, cancelled: readonly EndedTask[]): void {
  const tokens = cancelled.flatMap(({ token }) => token ?? []);
  db.signal({ kind: "events" });
  // A slot, an agent's limit or a lane's total may have become free.
  if (tokens.length > 0) {
    db.signal({ kind: "fenced", tokens, reason: "cancelled" });
    db.signal({ kind: "work" });
  }
}

function cancelTask(
  db: SqliteDatabase,
  ledger: Ledger,
  { tenant, id, error, now }: { tenant: string; id: string; error: string | null; now: number },
): CancelledTask {
  const task = db
    .prepare<Omit<WaitingTask, "resting_state"> & { resting_state: TaskState }>(
      `select ${WAITING_COLUMNS} from task t where t.tenant = ? and t.id = ?`,
    )
    .get(tenant, id);
  if (task === undefined) return { id, found: false };
  if (isTerminal(task.resting_state)) return { id, found: true, was: task.resting_state as TerminalState };
  return endNow(
    db,
    ledger,
    { ...task, id, resting_state: task.resting_state as WaitingState },
    { error, now },
  );
}

/** Cancels an open task, waiting or running. `resting_state`: its state without the lease. */
export function endNow(
  db: SqliteDatabase,
  ledger: Ledger,
  task: WaitingTask & { readonly id: string },
  { error, now }: { error: string | null; now: number },
): EndedTask {
  const lease = db
    .prepare<Lease>(`delete from lease where task_seq = ? returning ${LEASE_COLUMNS}`)
    .get(task.seq);
  if (lease === undefined) endWaitingTask(db, ledger, task, { state: "cancelled", error, now });
  else endTask(db, ledger, lease, { state: "cancelled", outcome: "cancelled", result: null, error, now });
  const { agent, lane } = ledger.line(task.line);
  return { id: task.id, found: true, was: null, token: lease?.token ?? null, agent, lane };
}
