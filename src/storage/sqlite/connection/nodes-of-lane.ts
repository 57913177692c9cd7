import type { SqliteDatabase } from "./database.ts";

export interface ServingNode {
  readonly node: string;
  /** Negative if it runs more tasks than it now has slots. */
  readonly free: number;
  /** How many of its slots one tenant may hold; null: no limit. */
  readonly perTenant: number | null;
}

/** The live nodes with slots in a lane, and how many of those are free. */
export function nodesOfLane(db: SqliteDatabase, lane: string): ServingNode[] {
  return db
    .prepare<ServingNode>(
      // Tasks that are held ahead have no slot yet.
      `select s.node, s.slots - min(coalesce(h.held, 0), max(s.slots, coalesce(h.running, 0))) as free,
              s.per_tenant as perTenant
         from node_slot s join node n on n.id = s.node
         left join (select l.node, count(*) as held, sum(l.state = 'running') as running
                      from lease l join line on line.id = l.line
                     where line.lane = @lane group by l.node) h on h.node = s.node
        where s.lane = @lane and n.dead = 0 and n.past = 0`,
    )
    .all({ lane });
}
