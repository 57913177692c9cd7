import {
  type TaskSituation,
  WAITING_QUEUES_MAX,
  type WaitingQueue,
  type WaitingTasks,
} from "../../storage.ts";
import { isAlone, isExecutable } from "../connection/abilities.ts";
import type { PostgresDatabase } from "../connection/database.ts";

/** The waiting tasks of a tenant, by what could hold them. One statement, so that all counts are of the same snapshot. */
export async function readWaiting(
  db: PostgresDatabase,
  { tenant }: { readonly tenant: string },
): Promise<WaitingTasks> {
  const [row] = await db.readDurably<WaitingRow>({ name: "read_waiting", text: WAITING, values: [tenant] });
  if (row === undefined) throw new Error("A statement without a condition has a row.");
  const queues = row.queues.map(toQueue);
  const listed = queues.reduce((sum, { ready }) => sum + ready, 0);
  return {
    forTasks: Number(row.dependency),
    delayed: Number(row.delayed),
    heldBack: Number(row.parked),
    queues,
    readyElsewhere: Number(row.ready) - listed,
    tenant: { disabled: row.disabled, inflight: Number(row.inflight), max: row.max_inflight },
  };
}

interface WaitingRow {
  readonly ready: string;
  readonly parked: string;
  readonly delayed: string;
  readonly dependency: string;
  readonly queues: readonly QueueRow[];
  readonly disabled: boolean;
  readonly max_inflight: number | null;
  readonly inflight: string;
}

interface QueueRow {
  readonly lane: string;
  readonly agent: string;
  readonly ready: number;
  readonly executable: boolean;
  readonly alone: boolean;
  readonly agent_max: number | null;
  readonly in_lane: number;
  readonly inflight: number;
  readonly lane_inflight: number;
  readonly total: number | null;
  readonly per_agent: number | null;
  readonly lane_share: TaskSituation["laneShare"];
}

const QUEUES = `
  select q.*, l.inflight as lane_inflight, l.total, l.per_agent, h.lane_share,
         (select sum(s.inflight) from line s where s.tenant = $1 and s.agent = q.agent and s.lane = q.lane) as in_lane,
         (select sum(s.inflight) from line s where s.tenant = $1 and s.agent = q.agent) as inflight
    from (select n.lane, n.agent, e.executable, e.alone, sum(n.ready) as ready, max(n.agent_max) as agent_max
            from line n
           cross join lateral (select ${isExecutable("n")} as executable, ${isAlone("n")} as alone) e
           where n.tenant = $1 and n.ready > 0 group by n.lane, n.agent, e.executable, e.alone
           order by sum(n.ready) desc, n.lane, n.agent, e.executable, e.alone limit ${WAITING_QUEUES_MAX}) q
    join lane l on l.name = q.lane
    join shares h on h.lane = q.lane`;

export const WAITING = `
  with shares as materialized (
    select lane, lane_share(lane, $1) as lane_share
      from (select distinct lane from line where tenant = $1 and ready > 0) l)
  select n.ready, n.parked, o.disabled, o.max_inflight, o.inflight,
         coalesce((select tasks from tally where tenant = $1 and state = 'delayed'), 0) as delayed,
         coalesce((select tasks from tally where tenant = $1 and state = 'waiting_dependency'), 0) as dependency,
         coalesce((select json_agg(q order by q.ready desc, q.lane, q.agent, q.executable, q.alone) from (${QUEUES}) q), '[]') as queues
    from (select coalesce(sum(ready), 0) as ready, coalesce(sum(parked), 0) as parked from line where tenant = $1) n,
         (select coalesce((select disabled from tenant where id = $1), false) as disabled,
                 (select max_inflight from tenant where id = $1) as max_inflight,
                 (select coalesce(sum(inflight), 0) from tenant_line where tenant = $1) as inflight) o`;

function toQueue(row: QueueRow): WaitingQueue {
  return {
    lane: row.lane,
    agent: row.agent,
    ready: row.ready,
    executable: row.executable,
    alone: row.alone,
    limits: {
      lane: { inflight: row.lane_inflight, total: row.total },
      laneShare: row.lane_share,
      inLane: { inflight: row.in_lane, max: row.per_agent },
      agent: { inflight: row.inflight, max: row.agent_max },
    },
  };
}
