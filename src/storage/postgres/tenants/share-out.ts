import { readSql } from "../connection/sql-file.ts";
import { leftFor } from "./tenant-shares.ts";

/** How many more tasks of a tenant may start in a lane, not counting the lane's total. `t`: a startable row of `tenant_line`. */
export function tenantRoom(t: string, supply = `${t}.supply`, freed = "0"): string {
  return `least(${supply}, ${t}.lane_max + ${freed} - ${t}.inflight, case when ${t}.max_inflight is not null then
    ${t}.max_inflight + ${freed} - (select sum(s.inflight) from tenant_line s where s.tenant = ${t}.tenant) end)`;
}

/** What an agent queue with freed slots could start once that is recorded. It has no limit of its own; see limits_on. */
export function roomWhenFreed(n: string, slots: string): string {
  return `greatest(least(${n}.ready, (p_lane).per_agent - ${n}.inflight + ${slots}), 0)`;
}

/** In a lane of more tenants than this, those that can start something are found by an index. */
export const TENANTS_MAX = 32;

/**
 * Tenants that may get the next starts of a lane: the first `count` of many tenants, or of a few all that can start something.
 */
function candidates(columns: string, count: string): string {
  return `
    (select ${columns} from tenant_line t where (p_lane).crowded and t.lane = (p_lane).name and t.turn_unowed is not null
      order by t.turn_unowed, t.turn_inflight, t.turn_served, t.id limit ${count})
    union all
    select ${columns} from tenant_line t where not (p_lane).crowded and t.lane = (p_lane).name and t.startable`;
}

/** sqlite/tenants/share-out.ts does the same in TypeScript. */
export const SHARE_FUNCTIONS = readSql(new URL("./share-out.sql", import.meta.url), {
  CANDIDATES_WITH_ROOM: candidates(
    `t.id, t.inflight, t.last_served, t.owed, t.urgent_lines, t.ahead_streak, least(${tenantRoom("t")}, ${leftFor("t")}) as room`,
    "p_count + v_passed_over",
  ),
  ROOM_WHEN_FREED: roomWhenFreed("n", "f.slots"),
  CANDIDATES_WHEN_FREED: candidates("t.id", "p_count + cardinality(p_freed) + v_passed_over"),
  TENANT_ROOM_WHEN_FREED: tenantRoom("t", "t.supply + coalesce(g.supply, 0)", "coalesce(g.slots, 0)"),
  LEFT_FOR_TENANT: leftFor("t"),
});
