import { IDEMPOTENCY_MS, type InsertedTask, type NewTask } from "../../storage.ts";
import type { OracleState } from "../state.ts";

/** Those of these idempotency keys that have a task. */
export function keptKeys(
  state: OracleState,
  { tenant, keys }: { tenant: string; keys: readonly string[] },
): string[] {
  return keys.filter((key) => keptKey(state, tenant, key) !== null);
}

/** A key that was used within a day, and the task that was created with it. */
function keptKey(state: OracleState, tenant: string, key: string) {
  const since = state.clock.now() - IDEMPOTENCY_MS;
  const kept = state.keys.find(
    (each) => each.tenant === tenant && each.key === key && each.createdAt > since,
  );
  const task = state.tasks.find(({ seq }) => seq === kept?.taskSeq);
  return kept === undefined || task === undefined ? null : { kept, task };
}

/** The task that was created with the same key. */
export function findByKey(state: OracleState, { tenant, idempotency }: NewTask): InsertedTask | null {
  const found = idempotency === null ? null : keptKey(state, tenant, idempotency.key);
  if (found === null) return null;
  const { kept, task } = found;
  const { seq, id, position, createdAt, runAt, deadline } = task;
  const repeats = kept.hash === idempotency?.hash ? "same" : "other";
  return { seq, id, state: task.state, position, createdAt, runAt, deadline, rejection: null, repeats };
}
