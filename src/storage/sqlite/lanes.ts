import type { Strategy } from "../../model/lane.ts";
import type { LaneRecord, LaneStorage } from "../storage.ts";
import type { SqliteDatabase } from "./database.ts";
import { Ledger, LINE_COLUMNS, type Line } from "./ledger.ts";

export function sqliteLanes(db: SqliteDatabase): LaneStorage {
  return {
    async configure({ lanes }) {
      db.write(() => {
        const save = db.prepare(
          `insert into lane (name, total, per_agent, strategy) values (?, ?, ?, ?)
           on conflict (name) do update
             set total = excluded.total, per_agent = excluded.per_agent, strategy = excluded.strategy`,
        );
        for (const { name, total, perAgent, strategy } of lanes) save.run(name, total, perAgent, strategy);
        for (const { name } of lanes) refreshLines(db, "lane = ?", [name]);
        db.signal({ kind: "work" });
      });
      await db.durable();
    },
    async list() {
      const rows = db
        .prepare<{
          name: string;
          total: number | null;
          per_agent: number | null;
          strategy: Strategy;
          waiting: number;
          inflight: number;
        }>("select * from lane order by name")
        .all();
      return rows.map(
        ({ name, total, per_agent, strategy, waiting, inflight }): LaneRecord => ({
          name,
          total,
          perAgent: per_agent,
          strategy,
          waiting,
          inflight,
        }),
      );
    },
  };
}

/** A changed limit changes which lines can start something. Only those are written: there may be any number of others. */
export function refreshLines(db: SqliteDatabase, condition: string, values: readonly string[]): void {
  const ledger = new Ledger(db);
  const setFlags = db.prepare("update line set startable = ?, ahead = ? where id = ?");
  const rows = db
    .prepare<Line & Flags>(`select ${LINE_COLUMNS}, startable, ahead from line where ${condition}`)
    .all(...values);
  for (const { startable, ahead, ...row } of rows) {
    const line = ledger.adopt(row);
    const flags: Flags = { startable: ledger.room(line) > 0 ? 1 : 0, ahead: ledger.isAhead(line) ? 1 : 0 };
    if (flags.startable !== startable || flags.ahead !== ahead)
      setFlags.run(flags.startable, flags.ahead, line.id);
  }
}

interface Flags {
  readonly startable: 0 | 1;
  readonly ahead: 0 | 1;
}
