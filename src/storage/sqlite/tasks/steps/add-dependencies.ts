import type { TaskState, TerminalState } from "../../../../model/task-state.ts";
import type { NewTask } from "../../../storage.ts";
import type { Transaction } from "../../connection/transaction.ts";
import { addRelease } from "./add-release.ts";

/** What a new task depends on. */
export interface Parents {
  /** The dependencies that exist. */
  readonly known: readonly Parent[];
  /** How many are not done or do not exist. */
  readonly unmet: number;
}

interface Parent {
  readonly seq: number;
  readonly resting_state: TaskState;
}

export const NO_PARENTS: Parents = { known: [], unmet: 0 };

export function findParents(tx: Transaction, { tenant, dependsOn }: NewTask): Parents {
  const find = tx.prepare<Parent>("select seq, resting_state from task where tenant = ? and id = ?");
  const known = dependsOn.flatMap((id) => find.get(tenant, id) ?? []);
  const done = known.filter(({ resting_state }) => resting_state === "done").length;
  return { known, unmet: dependsOn.length - done };
}

/** Stores the dependencies of a new task. For one that has already ended without being done, it adds a release row. */
export function addDependencies(tx: Transaction, childSeq: number, { known }: Parents): void {
  const add = tx.prepare("insert into dependency (parent_seq, child_seq) values (?, ?)");
  const markTask = tx.prepare("update task set has_dependants = 1 where seq = ? and has_dependants = 0");
  const markLease = tx.prepare("update lease set has_dependants = 1 where task_seq = ?");
  for (const { seq: parentSeq, resting_state: state } of known) {
    add.run(parentSeq, childSeq);
    if (markTask.run(parentSeq).changes > 0) {
      markLease.run(parentSeq);
      tx.db.leases.forget(parentSeq);
    }
    if (state === "failed" || state === "cancelled" || state === "rejected") {
      addRelease(tx, { parentSeq, state: state satisfies TerminalState, afterSeq: childSeq - 1 });
    }
  }
}
