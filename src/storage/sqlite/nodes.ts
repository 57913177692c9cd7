import type { Held, NodeRecord, NodeStorage } from "../storage.ts";
import type { SqliteDatabase } from "./database.ts";

/** Incarnations of this process: one lives, those before it are dead as soon as it says so. */
export function sqliteNodes(db: SqliteDatabase): NodeStorage {
  return {
    async register({ node }) {
      db.write((now) => db.prepare("insert into node (id, beat_at) values (?, ?)").run(node, now));
    },
    async heartbeat({ node }) {
      return db.write((now) => {
        const renewed = db
          .prepare("update node set beat = beat + 1, beat_at = ? where id = ? and dead = 0")
          .run(now, node);
        if (renewed.changes === 0) return { alive: false, held: [] };
        const held = db
          .prepare<Held>("select task_seq as seq, token from lease where node = ? order by task_seq")
          .all(node);
        return { alive: true, held };
      });
    },
    async list() {
      const rows = db
        .prepare<{ id: string; beat: number; dead: 0 | 1 }>("select id, beat, dead from node")
        .all();
      return rows.map(({ id, beat, dead }): NodeRecord => ({ node: id, beat, dead: dead === 1 }));
    },
    async markDead({ node, beat }) {
      return db.write(
        () =>
          db.prepare("update node set dead = 1 where id = ? and beat = ? and dead = 0").run(node, beat)
            .changes === 1,
      );
    },
    async remove({ node }) {
      db.write(() =>
        db
          .prepare(
            "delete from node where id = @node and dead = 1 and not exists (select 1 from lease where node = @node)",
          )
          .run({ node }),
      );
    },
  };
}
