import { closeSync, openSync, statSync } from "node:fs";

/** Only the user that Rota runs as reads and writes it. */
const PRIVATE = 0o600;
/** The permission bits of other users. */
const OTHERS = 0o077;

/** Makes an empty file that is this user's alone, unless there is a file already. SQLite gives its log the same mode. */
export function createPrivate(path: string): void {
  try {
    closeSync(openSync(path, "wx", PRIVATE));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
}

/** The files of a database that other users of this machine may read or write: older files, or files of another program. */
export function looseFiles(path: string): string[] {
  // Windows has no such modes.
  if (process.platform === "win32") return [];
  return ["", "-wal", "-shm", ".lock"].map((suffix) => path + suffix).filter(isLoose);
}

function isLoose(path: string): boolean {
  const mode = statSync(path, { throwIfNoEntry: false })?.mode ?? 0;
  return (mode & OTHERS) !== 0;
}
