import type { TerminalState } from "../../../../model/task-state.ts";
import { dependencyError } from "../../../dependency-error.ts";
import type { Transaction } from "../../connection/transaction.ts";

export interface NewRelease {
  readonly parentSeq: number;
  readonly state: TerminalState;
  /** The error of the parent, if the parent was cancelled because of one of its own dependencies. */
  readonly error?: string | undefined;
  /** The end was passed on to dependants up to this one. */
  readonly afterSeq?: number;
}

/** Adds a release row: the end of a task has to be passed on to its dependants. */
export function addRelease(tx: Transaction, release: NewRelease): void {
  const { parentSeq, state, afterSeq = 0 } = release;
  const error = state === "done" ? null : (release.error ?? dependencyError(idOf(tx, parentSeq), state));
  tx.prepare("insert into release (parent_seq, error, after_seq) values (?, ?, ?)").run(
    parentSeq,
    error,
    afterSeq,
  );
  tx.ledger.hasReleases = true;
}

function idOf(tx: Transaction, seq: number): string {
  return tx.prepare<{ id: string }>("select id from task where seq = ?").get(seq)?.id ?? "";
}
