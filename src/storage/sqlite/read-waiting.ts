import { divide } from "../divide.ts";
import { type TaskSituation, WAITING_LOOKED, type WaitingQueue, type WaitingTasks } from "../storage.ts";
import type { SqliteDatabase } from "./database.ts";
import { readLaneShare } from "./read-situation.ts";
import { IS_ALONE, IS_EXECUTABLE } from "./standing.ts";

/** What waits of a tenant, by what could hold it. */
export async function readWaiting(
  db: SqliteDatabase,
  { tenant }: { readonly tenant: string },
): Promise<WaitingTasks> {
  return db.read(() => {
    const sums = db.prepare<Sums>(SUMS).get({ tenant }) as Sums;
    const delayed = db.prepare<{ retryWait: number; notBefore: number }>(DELAYED).get({ tenant });
    const held = db.prepare<{ batch: number; session: number; key: number }>(HELD).get({ tenant });
    const queues = readQueues(db, tenant);
    const early = sums.delayed + sums.dependency;
    const told = queues.reduce((sum, { ready }) => sum + ready, 0);
    return {
      forTasks: sums.dependency,
      ...divide(sums.delayed, delayed ?? { notBefore: 0, retryWait: 0 }),
      ...divide(sums.waiting - sums.ready - early, held ?? { batch: 0, session: 0, key: 0 }),
      queues,
      readyElsewhere: sums.ready - told,
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

const DELAYED = `
  select count(*) - coalesce(sum(tried), 0) as notBefore, coalesce(sum(tried), 0) as retryWait from (
    select executions > 0 as tried from task
     where tenant = @tenant and resting_state = 'delayed' order by seq desc limit ${WAITING_LOOKED.tasks})`;

const HELD = `
  select coalesce(sum(parked = 'batch'), 0) as batch, coalesce(sum(parked = 'session'), 0) as session,
         coalesce(sum(parked = 'key'), 0) as key
    from (select t.parked from line cross join task t indexed by task_parked on t.line = line.id and t.parked is not null
           where line.tenant = @tenant and line.waiting > line.ready limit ${WAITING_LOOKED.tasks})`;

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
           order by sum(ready) desc, lane, agent, executable, alone limit ${WAITING_LOOKED.queues}) q
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
