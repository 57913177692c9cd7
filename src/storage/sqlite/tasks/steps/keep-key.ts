import type { TaskState } from "../../../../model/task-state.ts";
import { IDEMPOTENCY_MS, type InsertedTask, type NewTask } from "../../../storage.ts";
import type { Transaction } from "../../connection/transaction.ts";

/** The result for a task whose key was used within `IDEMPOTENCY_MS`: the earlier task. Null: the key is new. */
export function findByKey(tx: Transaction, task: NewTask): InsertedTask | null {
  if (task.idempotency === null) return null;
  const { key, hash } = task.idempotency;
  const first = tx
    .prepare<{
      hash: string;
      seq: number;
      id: string;
      state: TaskState;
      position: number;
      created_at: number;
      run_at: number | null;
      deadline: number | null;
    }>(
      `select k.hash, t.seq, t.id, coalesce(l.state, t.resting_state) as state, t.position, t.created_at, t.run_at,
              t.deadline
         from idempotency_key k join task t on t.seq = k.task_seq left join lease l on l.task_seq = t.seq
        where k.tenant = ? and k.key = ? and k.created_at > ?`,
    )
    .get(task.tenant, key, tx.now - IDEMPOTENCY_MS);
  if (first === undefined) return null;
  return {
    seq: first.seq,
    id: first.id,
    state: first.state,
    position: first.position,
    createdAt: first.created_at,
    runAt: first.run_at,
    deadline: first.deadline,
    rejection: null,
    repeats: first.hash === hash ? "same" : "other",
  };
}

/** Stores the key of an accepted task. */
export function keepKey(tx: Transaction, task: NewTask, taskSeq: number): void {
  if (task.idempotency === null) return;
  const { key, hash } = task.idempotency;
  tx.prepare(
    `insert into idempotency_key (tenant, key, hash, task_seq, created_at) values (?, ?, ?, ?, ?)
     on conflict (tenant, key) do update
       set hash = excluded.hash, task_seq = excluded.task_seq, created_at = excluded.created_at`,
  ).run(task.tenant, key, hash, taskSeq, tx.now);
}
