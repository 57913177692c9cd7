import Sqlite from "better-sqlite3";
import type { Clock } from "../../src/model/clock.ts";
import { RotaError } from "../../src/model/errors.ts";
import { readMigrations } from "../../src/storage/migrations.ts";
import type { SqliteOptions } from "../../src/storage/sqlite/connection/database.ts";
import { migrate } from "../../src/storage/sqlite/connection/migrate.ts";
import { openSqlite } from "../../src/storage/sqlite/connection/open.ts";
import type { Storage, StorageCapabilities } from "../../src/storage/storage.ts";

/** What takes long to make is made once: a database that is set up and empty. */
const image = (() => {
  const db = new Sqlite(":memory:");
  migrate(db, readMigrations(new URL("../../src/storage/sqlite/migrations/", import.meta.url)));
  return db.serialize();
})();

export function openMemory(clock: Clock, options: Partial<SqliteOptions> = {}): Promise<Storage> {
  return openSqlite({ path: ":memory:", clock, image, ...options });
}

/**
 * The same storage as another node sees it: one of several, that cannot close it for the others. Leases then count.
 */
export function asSharedStorage(storage: Storage): Storage {
  return withCapabilities(
    { ...storage, close: async () => {} },
    {
      exclusive: false,
      durable: true,
      claimsAhead: false,
    },
  );
}

/** The same storage for a node that claims tasks ahead, as with a storage whose exchanges take long. */
export function asDistantStorage(storage: Storage): Storage {
  return withCapabilities(storage, { ...storage.capabilities, claimsAhead: true });
}

function withCapabilities(storage: Storage, capabilities: StorageCapabilities): Storage {
  return { ...storage, capabilities };
}

/** An operation by its path, as in `tasks.insert` or `now`. */
export type Operation = string;

export interface Call {
  readonly operation: Operation;
  // biome-ignore lint/suspicious/noExplicitAny: a test knows what its operation is called with.
  readonly params: any;
}

export interface Meddler {
  /** Called before an operation, which does not happen if this throws. May also wait. */
  before?(call: Call): void | Promise<void>;
  /** Called after an operation has been committed: a throw is a response that was lost on its way. */
  after?(call: Call): void | Promise<void>;
}

const GROUPS = [
  "tasks",
  "events",
  "logs",
  "nodes",
  "workers",
  "sessions",
  "schedules",
  "notifications",
  "lanes",
  "agents",
  "deliveries",
  "tenants",
  "keys",
  "audit",
  "bulks",
  "counters",
] as const;

/** A storage whose calls a test can watch, delay or fail. */
export function meddle(storage: Storage, meddler: Meddler): Storage {
  const meddled: Record<string, unknown> = {
    ...storage,
    now: wrap("now", storage.now),
    check: wrap("check", storage.check),
  };
  for (const group of GROUPS) {
    const operations = Object.entries(storage[group] as unknown as Record<string, Operate>);
    meddled[group] = Object.fromEntries(
      operations.map(([name, operate]) => [name, wrap(`${group}.${name}`, operate)]),
    );
  }
  return meddled as unknown as Storage;

  function wrap(operation: Operation, operate: Operate): Operate {
    return async (params) => {
      await meddler.before?.({ operation, params });
      const answer = await operate(params);
      await meddler.after?.({ operation, params });
      return answer;
    };
  }
}

// biome-ignore lint/suspicious/noExplicitAny: stands for every operation there is.
type Operate = (params?: any) => Promise<any>;

export function away(): RotaError {
  return new RotaError("storage_unavailable", "the connection was lost");
}
