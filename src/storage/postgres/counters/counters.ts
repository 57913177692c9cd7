import { PRIORITY_CRITICAL } from "../../../model/priority.ts";
import { readSql } from "../connection/sql-file.ts";
import { tenantRoom } from "../tenants/share-out.ts";

/** How many more tasks agent queue `n` may start, without limits of its tenant and lane. Negative if it runs too many. */
export function roomOf(n: string, perAgent: string): string {
  return `least(${n}.ready, ${agentRoomOf(n, perAgent)})`;
}

/**
 * How many more tasks agent queue `n` may start by the limits of its agent, however many are ready. 0: no live node can execute
 * them; null: no limit.
 */
export function agentRoomOf(n: string, perAgent: string): string {
  return `case when ${n}.standing <> 0 then 0 else ${agentLimitOf(n, perAgent)} end`;
}

/** As `agentRoomOf`, whether or not a node can execute the tasks. */
export function agentLimitOf(n: string, perAgent: string): string {
  return `least(${perAgent} - case when ${n}.shared then
    (select sum(s.inflight) from line s where s.tenant = ${n}.tenant and s.agent = ${n}.agent and s.lane = ${n}.lane)
    else ${n}.inflight end, case when ${n}.agent_max is not null then
    ${n}.agent_max - (select sum(s.inflight) from line s where s.tenant = ${n}.tenant and s.agent = ${n}.agent) end)`;
}

/** Whether the first task of agent queue `n` goes ahead of fairness. */
const AHEAD = `n.head_rank is not null and (n.head_rank <= ${PRIORITY_CRITICAL} or l.strategy = 'priority-fifo')`;

/** Whether tenant `t` can start something in a lane. */
const CAN_START = `not t.disabled and ${tenantRoom("t")} > 0`;

/**
 * Functions that maintain the counters of agent queues, lanes and tenants. They run under the write lock, one writer at a time.
 * So limits are exact on any number of nodes, and event numbers follow the order of commits.
 */
export const COUNTER_FUNCTIONS = readSql(new URL("./counters.sql", import.meta.url), {
  PRIORITY_CRITICAL,
  ROOM: roomOf("n", "l.per_agent"),
  AHEAD,
  CAN_START,
});
