import {
  type TaskSituation,
  WAITING_QUEUES_MAX,
  type WaitingQueue,
  type WaitingTasks,
} from "../../storage.ts";
import type { SqliteDatabase } from "../connection/database.ts";
import { IS_ALONE, IS_EXECUTABLE } from "../counters/standing.ts";
import { readLaneShare } from "./read-situation.ts";

/** The waiting tasks of a tenant, by what could hold them back. */
export async function readWaiting(
  db: SqliteDatabase,
  { tenant }: { readonly tenant: string },
): Promise<WaitingTasks> {
  return db.read(() => {
    const sums = db.prepare<Sums>(SUMS).get({ tenant }) as Sums;
    const queues = readQueues(db, tenant);
    const listed = queues.reduce((sum, { ready }) => sum + ready, 0);
    return {
      forTasks: sums.dependency,
      delayed: sums.delayed,
      heldBack: sums.waiting - sums.ready - sums.delayed - sums.dependency,
      queues,
      readyElsewhere: sums.ready - listed,
      tenant: { disabled: sums.disabled === 1, inflight: sums.inflight, max: sums.max_inflight },
    };
  });
}

interface Sums {
  readonly waiting: number;
  readonly ready: number;
  readonly delayed: number;
  readonly dependency: number;
  readonly disabled: 0 | 1;
  readonly max_inflight: number | null;
  readonly inflight: number;
}

const SUMS = `
  select q.waiting, q.ready, o.disabled, o.max_inflight, o.inflight,
         coalesce((select tasks from tally where tenant = @tenant and state = 'delayed'), 0) as delayed,
         coalesce((select tasks from tally where tenant = @tenant and state = 'waiting_dependency'), 0) as dependency
    from (select coalesce(sum(waiting), 0) as waiting, coalesce(sum(ready), 0) as ready from line where tenant = @tenant) q,
         (select coalesce((select disabled from tenant where id = @tenant), 0) as disabled,
                 (select max_inflight from tenant where id = @tenant) as max_inflight,
                 (select coalesce(sum(inflight), 0) from tenant_line where tenant = @tenant) as inflight) o`;

interface QueueRow {
  readonly lane: string;
  readonly agent: string;
  readonly ready: number;
  readonly executable: 0 | 1;
  readonly alone: 0 | 1;
  readonly agent_max: number | null;
  readonly in_lane: number;
  readonly inflight: number;
  readonly lane_inflight: number;
  readonly total: number | null;
  readonly per_agent: number | null;
}

const QUEUES = `
  select q.*, l.inflight as lane_inflight, l.total, l.per_agent,
         (select sum(s.inflight) from line s where s.tenant = @tenant and s.agent = q.agent and s.lane = q.lane) as in_lane,
         (select sum(s.inflight) from line s where s.tenant = @tenant and s.agent = q.agent) as inflight
    from (select lane, agent, executable, alone, sum(ready) as ready, max(agent_max) as agent_max
            from (select lane, agent, ready, agent_max, ${IS_EXECUTABLE} as executable, ${IS_ALONE} as alone
                    from line where tenant = @tenant and ready > 0)
           group by lane, agent, executable, alone
           order by sum(ready) desc, lane, agent, executable, alone limit ${WAITING_QUEUES_MAX}) q
    join lane l on l.name = q.lane order by q.ready desc, q.lane, q.agent, q.executable, q.alone`;

function readQueues(db: SqliteDatabase, tenant: string): WaitingQueue[] {
  const rows = db.prepare<QueueRow>(QUEUES).all({ tenant });
  const lanes = new Set(rows.map(({ lane }) => lane));
  const shares = new Map([...lanes].map((lane) => [lane, readLaneShare(db, { lane, tenant })]));
  return rows.map((row) => toQueue(row, shares.get(row.lane) ?? null));
}

function toQueue(row: QueueRow, laneShare: TaskSituation["laneShare"]): WaitingQueue {
  return {
    lane: row.lane,
    agent: row.agent,
    ready: row.ready,
    executable: row.executable === 1,
    alone: row.alone === 1,
    limits: {
      lane: { inflight: row.lane_inflight, total: row.total },
      laneShare,
      inLane: { inflight: row.in_lane, max: row.per_agent },
      agent: { inflight: row.inflight, max: row.agent_max },
    },
  };
}
