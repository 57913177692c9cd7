import type { Held, NodeDetails, NodeLane, NodeRecord, NodeStorage, Slots } from "../../storage.ts";
import { preemptAfterChange } from "../tenants/steps/refresh-limits.ts";
import type { SqliteDatabase } from "./database.ts";
import { abilitiesChanged, rememberAgents, writeAbilities } from "./steps/change-abilities.ts";
import type { Transaction } from "./transaction.ts";

/** Node memberships of this process. Only one is alive; it declares the earlier ones dead. */
export function sqliteNodes(db: SqliteDatabase): NodeStorage {
  return {
    async register({ node, version = null, slots = {}, perTenant = {}, abilities = null }) {
      db.transact((tx) => {
        tx.prepare(
          "insert into node (id, beat_at, version, started_at) values (@node, @now, @version, @now)",
        ).run({ node, now: tx.now, version });
        writeSlots(tx, node, { slots, perTenant });
        abilitiesChanged(tx, writeAbilities(tx, node, abilities));
      });
    },
    async setAbilities({ node, abilities }) {
      db.transact((tx) => {
        if (tx.prepare("select 1 from node where id = ? and dead = 0").get(node) === undefined) return;
        abilitiesChanged(tx, writeAbilities(tx, node, abilities));
      });
    },
    async setSlots({ node, slots, perTenant = {}, draining = false }) {
      db.transact((tx) => {
        const known = tx.prepare("update node set draining = ? where id = ?").run(draining ? 1 : 0, node);
        if (known.changes === 0) return;
        const before = lanesOf(db, node);
        writeSlots(tx, node, { slots, perTenant });
        preemptAfterChange(tx, before);
      });
    },
    async heartbeat({ node }) {
      return db.transact((tx) => {
        const renewed = tx
          .prepare("update node set beat = beat + 1, beat_at = ? where id = ? and dead = 0")
          .run(tx.now, node);
        if (renewed.changes === 0) return { alive: false, held: [] };
        const held = tx
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
    async details() {
      return db.read(() => {
        const lanes = Map.groupBy(
          db.prepare<NodeLane & { node: string }>(LANES_OF_NODES).all(),
          ({ node }) => node,
        );
        return db
          .prepare<DetailsRow>("select * from node order by id")
          .all()
          .map((row) => toDetails(row, lanes.get(row.id) ?? []));
      });
    },
    async markDead({ node, beat }) {
      return db.transact((tx) => {
        const marked = tx
          .prepare("update node set dead = 1 where id = ? and beat = ? and dead = 0")
          .run(node, beat);
        if (marked.changes === 0) return false;
        rememberAgents(tx, node);
        abilitiesChanged(tx, { lessServed: false });
        preemptAfterChange(tx, lanesOf(db, node));
        return true;
      });
    },
    async remove({ node }) {
      db.transact((tx) => {
        const removed = tx
          .prepare(
            "delete from node where id = @node and dead = 1 and not exists (select 1 from lease where node = @node)",
          )
          .run({ node });
        if (removed.changes === 0) return;
        writeSlots(tx, node, { slots: {}, perTenant: {} });
        tx.prepare("delete from node_agent where node = ?").run(node);
      });
    },
  };
}

const LANES_OF_NODES = `
  select node, lane, sum(slots) as slots, sum(running) as running
    from (select node, lane, slots, 0 as running from node_slot
          union all
          select l.node, n.lane, 0, sum(l.state = 'running') from lease l join line n on n.id = l.line group by l.node, n.lane)
   group by node, lane having sum(slots) + sum(running) > 0 order by node, lane`;

interface DetailsRow {
  readonly id: string;
  readonly version: string | null;
  readonly started_at: number | null;
  readonly beat_at: number;
  readonly dead: 0 | 1;
  readonly draining: 0 | 1;
}

function toDetails(row: DetailsRow, lanes: readonly NodeLane[]): NodeDetails {
  return {
    node: row.id,
    version: row.version,
    startedAt: row.started_at,
    seenAt: row.beat_at,
    dead: row.dead === 1,
    draining: row.draining === 1,
    lanes: lanes.map(({ lane, slots, running }) => ({ lane, slots, running })),
  };
}

function lanesOf(db: SqliteDatabase, node: string): string[] {
  const slots = db.prepare<{ lane: string }>("select lane from node_slot where node = ?").all(node);
  return slots.map(({ lane }) => lane);
}

function writeSlots(
  tx: Transaction,
  node: string,
  { slots, perTenant }: { slots: Slots; perTenant: Slots },
): void {
  tx.prepare("delete from node_slot where node = ?").run(node);
  const add = tx.prepare("insert into node_slot (node, lane, slots, per_tenant) values (?, ?, ?, ?)");
  for (const [lane, count] of Object.entries(slots)) add.run(node, lane, count, perTenant[lane] ?? null);
}
