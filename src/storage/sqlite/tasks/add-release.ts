import type { TerminalState } from "../../../model/task-state.ts";
import { dependencyError } from "../../dependency-error.ts";
import type { SqliteDatabase } from "../connection/database.ts";
import type { Ledger } from "../counters/ledger.ts";

export interface NewRelease {
  readonly parentSeq: number;
  readonly state: TerminalState;
  /** The error of the parent, if the parent was cancelled because of one of its own dependencies. */
  readonly error?: string | undefined;
  /** The end was passed on to dependants up to this one. */
  readonly afterSeq?: number;
}

/** Adds a release row: the end of a task has to be passed on to its dependants. */
export function addRelease(db: SqliteDatabase, ledger: Ledger, release: NewRelease): void {
  const { parentSeq, state, afterSeq = 0 } = release;
  const error = state === "done" ? null : (release.error ?? dependencyError(idOf(db, parentSeq), state));
  db.prepare("insert into release (parent_seq, error, after_seq) values (?, ?, ?)").run(
    parentSeq,
    error,
    afterSeq,
  );
  ledger.hasReleases = true;
}

function idOf(db: SqliteDatabase, seq: number): string {
  return db.prepare<{ id: string }>("select id from task where seq = ?").get(seq)?.id ?? "";
}
