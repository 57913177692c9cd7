import { existsSync, lstatSync, readlinkSync, realpathSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";

/** A chain of more links is treated as a cycle. */
const LINKS_MAX = 40;

/**
 * The canonical path of a database file. Different names of one file (a symbolic link, `../`) must use the same lock, and
 * SQLite keeps its log beside the real file, not beside a link to it. A link may lead to a file that does not exist yet.
 */
export function realPath(path: string): string {
  // SQLite's binding trims names as well.
  let name = path.trim();
  for (let links = 0; links < LINKS_MAX; links += 1) {
    if (existsSync(name)) return realpathSync(name);
    if (!lstatSync(name, { throwIfNoEntry: false })?.isSymbolicLink())
      return join(realpathSync(dirname(name)), basename(name));
    name = resolve(dirname(name), readlinkSync(name));
  }
  throw new Error("it is a symbolic link that leads back to itself");
}
