import Sqlite from "better-sqlite3";
import { RotaError } from "../../../model/errors.ts";
import { createPrivate } from "./private-files.ts";

/**
 * Keeps a second Rota process from opening a database file. SQLite itself would allow it, and two schedulers would each assume
 * to be the only one. The lock is an exclusive transaction on an empty database beside the file. The operating system holds it,
 * so it ends with the process, even after a crash. `sqlite3` and backups can still read the database.
 */
export function lockForThisProcess(path: string): { release(): void } {
  createPrivate(`${path}.lock`);
  const lock = new Sqlite(`${path}.lock`, { timeout: 0 });
  try {
    lock.exec("begin exclusive");
  } catch (error) {
    lock.close();
    if (error instanceof Sqlite.SqliteError && error.code.startsWith("SQLITE_BUSY")) {
      throw new RotaError(
        "storage_unavailable",
        `another Rota process is using ${path}: stop it first, give this one a file of its own, ` +
          "or use PostgreSQL to run several",
        { cause: error },
      );
    }
    throw error;
  }
  return { release: () => lock.close() };
}
