import { existsSync, realpathSync } from "node:fs";
import { basename, dirname, join } from "node:path";

/**
 * The one name of a database file. Two names of it (a symbolic link, `./`) must meet at the same lock, and SQLite keeps
 * its log beside the real file, not beside a link to it.
 */
export function realPath(path: string): string {
  // SQLite's binding trims names as well.
  const name = path.trim();
  return existsSync(name) ? realpathSync(name) : join(realpathSync(dirname(name)), basename(name));
}
