/**
 * Loaded into a node before Rota. SIGUSR2 lets its SQLite database grow no further, and the next SIGUSR2 lets it grow
 * again. `max_page_count` is a setting of one connection, so that no other process can set it: SQLite itself then returns
 * SQLITE_FULL, as it does when the disk is full.
 */
import Sqlite from "better-sqlite3";

const PAGES_MAX = 4_294_967_294;

const open = new Set<Sqlite.Database>();
const { pragma } = Sqlite.prototype;
Sqlite.prototype.pragma = function (this: Sqlite.Database, ...args: Parameters<typeof pragma>) {
  open.add(this);
  return pragma.apply(this, args);
};

let full = false;
process.on("SIGUSR2", () => {
  full = !full;
  for (const db of open) {
    // Less than it has is taken as what it has.
    if (db.open) pragma.call(db, `max_page_count = ${full ? 1 : PAGES_MAX}`);
  }
});
