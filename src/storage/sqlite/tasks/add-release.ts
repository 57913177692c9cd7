import type { TerminalState } from "../../../model/task-state.ts";
import { dependencyError } from "../../dependency-error.ts";
import type { SqliteDatabase } from "../connection/database.ts";
import type { Ledger } from "../counters/ledger.ts";

export interface NewRelease {
  readonly parentSeq: number;
  readonly state: TerminalState;
  /** Why the parent itself was cancelled, when that was because of another that it depends on. */
  readonly error?: string | undefined;
  /** Those up to this one have heard. */
  readonly afterSeq?: number;
}

/** Leaves word for the dependants of a task that has ended. */
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
