import { CONSECUTIVE_CRITICAL_MAX, PRIORITY_CRITICAL } from "../../../model/priority.ts";
import { readSql } from "../connection/sql-file.ts";
import { roomWhenFreed, tenantRoom } from "../tenants/share-out.ts";
import { leftFor } from "../tenants/tenant-shares.ts";

/** Of tenant v_own, the first agent queue by `order`: of those that all nodes can execute, and of each pool in v_pools. */
function ofPools(columns: string, condition: string, order: string): string {
  const queues = (pool: string) => `
            (select ${columns} from line n
              where n.lane = p_lane and n.tenant = v_own.tenant and n.startable and ${pool} and ${condition}
              order by ${order} limit 1)`;
  return `${queues("n.pool = 0")}
          union all
          select c.* from unnest(v_pools) p(id) cross join lateral ${queues("n.pool <> 0 and n.pool = p.id")} c`;
}

/**
 * The first tasks `r` of those agent queues `c` of tenant p_tenant that can start something and have the smallest (rank, seq).
 * They include the tenant's first p_count tasks in lane p_lane.
 */
function tasksAhead(criticalOnly: string): string {
  return `(select n.id, n.head_rank, n.head_seq, n.room
              from line n where n.lane = p_lane and n.tenant = p_tenant and n.startable and n.ahead and n.pool = 0
             order by n.head_rank, n.head_seq limit p_count) c
     cross join lateral (
       select rank, task_seq from ready
        where line = c.id and (rank, task_seq) >= (c.head_rank, c.head_seq) and (not ${criticalOnly} or rank <= ${PRIORITY_CRITICAL})
        order by rank, task_seq limit least(c.room, p_count)) r`;
}

/** Whether task `t` may wait on a node until a slot is free. `offset 0`: its batch is looked up, rather than all batches read. */
const IS_HOLDABLE = `t.session is null and t.concurrency_key is null and t.executions = 0 and t.retry_count = 0
             and t.max_retries_if_lost > 0
             and (t.batch is null or not exists (select 1 from batch b where b.id = t.batch and b.parallelism is not null offset 0))`;

/**
 * Claims up to `limit` tasks of a lane, in the order in which as many claims of one task would take them. What it reads grows
 * with `limit`, not with the backlog. sqlite/tasks/claim-tasks.ts does the same in TypeScript.
 */
export const CLAIM_FUNCTIONS = readSql(new URL("./claim-tasks.sql", import.meta.url), {
  TENANT_ROOM: tenantRoom("t"),
  LEFT_FOR_TENANT: leftFor("t"),
  CONSECUTIVE_CRITICAL_MAX,
  PRIORITY_CRITICAL,
  AHEAD_OF_POOLS: ofPools(
    "n.id, n.head_rank, n.head_seq",
    `n.ahead and (n.head_rank <= ${PRIORITY_CRITICAL} or v_lane.strategy <> 'fair-fifo')`,
    "n.head_rank, n.head_seq",
  ),
  FAIR_OF_POOLS: ofPools("n.id, n.inflight, n.last_served", "true", "n.inflight, n.last_served, n.id"),
  TASKS_AHEAD: tasksAhead("p_critical_only"),
  ROOM_WHEN_FREED: roomWhenFreed("n", "f.slots"),
  ROOM_OF_FREED: roomWhenFreed("f", "f.slots"),
  IS_HOLDABLE,
});
