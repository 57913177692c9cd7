import { closeSync, openSync, statSync } from "node:fs";

/** Only the user that Rota runs as may read and write the file. */
const PRIVATE = 0o600;
/** The permission bits of other users. */
const OTHERS = 0o077;

/** Creates an empty file that only this user can access, unless the file exists. SQLite gives its log the same mode. */
export function createPrivate(path: string): void {
  try {
    closeSync(openSync(path, "wx", PRIVATE));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
}

/** The database files that other users of this machine may read or write: older files, or files that another program created. */
export function looseFiles(path: string): string[] {
  // Windows has no such modes.
  if (process.platform === "win32") return [];
  return ["", "-wal", "-shm", ".lock"].map((suffix) => path + suffix).filter(isLoose);
}

function isLoose(path: string): boolean {
  const mode = statSync(path, { throwIfNoEntry: false })?.mode ?? 0;
  return (mode & OTHERS) !== 0;
}
