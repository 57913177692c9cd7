import { existsSync, lstatSync, readlinkSync, realpathSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";

/** More links one behind the other are a circle. */
const LINKS_MAX = 40;

/**
 * The one name of a database file. Two names of it (a symbolic link, `../`) must meet at the same lock, and SQLite keeps
 * its log beside the real file, not beside a link to it. A link may lead to a file that does not exist yet.
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
