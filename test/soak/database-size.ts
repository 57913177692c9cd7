import { stat } from "node:fs/promises";
import Sqlite from "better-sqlite3";
import { Client } from "pg";

export interface DatabaseSize {
  /** Bytes of everything that is kept as long as tasks are. */
  readonly kept: number;
  /** Bytes of the log that changes go to first; null where it is not the database's but the server's. */
  readonly log: number | null;
  /** Bytes of runs and notifications, which are kept for days and so grow during the whole soak. */
  readonly keptForDays: number;
}

export interface DatabaseMeter {
  read(): Promise<DatabaseSize>;
  close(): Promise<void>;
}

/** What schedules leave behind is kept for a day at least, whatever the configuration says. */
const KEPT_FOR_DAYS = ["run", "notification"];

/** Pages of the file that are in use: those that are free are used again before it grows. */
export function sqliteMeter(file: string): DatabaseMeter {
  const db = new Sqlite(file, { readonly: true });
  const names = KEPT_FOR_DAYS.map((name) => `'${name}'`).join(", ");
  const sizes = db.prepare<[], { kept: number; days: number }>(
    `select sum(s.pgsize) filter (where o.tbl_name is null or o.tbl_name not in (${names})) as kept,
            coalesce(sum(s.pgsize) filter (where o.tbl_name in (${names})), 0) as days
       from dbstat s left join sqlite_schema o on o.name = s.name
      where s.aggregate = 1`,
  );
  return {
    async read() {
      const { kept, days } = sizes.get() ?? { kept: 0, days: 0 };
      const { size: log } = await stat(`${file}-wal`).catch(() => ({ size: 0 }));
      return { kept, log, keptForDays: days };
    },
    async close() {
      db.close();
    },
  };
}

/** Tables with their indexes, and with dead rows that wait for a vacuum. */
export async function postgresMeter(url: string): Promise<DatabaseMeter> {
  const client = new Client({ connectionString: url });
  await client.connect();
  return {
    async read() {
      const { rows } = await client.query<{ days: boolean; bytes: string }>(
        `select relname = any ($1) as days, sum(pg_total_relation_size(oid)) as bytes
           from pg_class where relnamespace = 'rota'::regnamespace and relkind = 'r' group by 1`,
        [KEPT_FOR_DAYS],
      );
      const of = (days: boolean) => Number(rows.find((row) => row.days === days)?.bytes ?? 0);
      return { kept: of(false), log: null, keptForDays: of(true) };
    },
    close: () => client.end(),
  };
}
