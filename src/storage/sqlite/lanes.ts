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

/** A changed limit changes which lines can start something. */
export function refreshLines(db: SqliteDatabase, condition: string, values: readonly string[]): void {
  const ledger = new Ledger(db);
  for (const line of db.prepare<Line>(`select ${LINE_COLUMNS} from line where ${condition}`).all(...values)) {
    ledger.adopt(line);
  }
  ledger.save({ limitsChanged: true });
}
