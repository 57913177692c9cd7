import type { SqliteDatabase } from "../connection/database.ts";
import { AGENT_QUEUE_COLUMNS, type AgentQueue, Ledger } from "./ledger.ts";
import { headOfAgentQueue, tenantFaults } from "./recount.ts";
import type { RecountSlices } from "./recount-slices.ts";

interface AgentQueueRow extends AgentQueue {
  readonly startable: 0 | 1;
  readonly counted_rank: number | null;
  readonly counted_seq: number | null;
}

/** Tasks of an agent queue that attempts hold. */
interface Held {
  readonly tasks: number;
  readonly queued: number;
  readonly exempt: number;
}

interface LaneSum {
  waiting: number;
  inflight: number;
  exempt: number;
}

const NOTHING_HELD: Held = { tasks: 0, queued: 0, exempt: 0 };
const EMPTY_LANE: LaneSum = { waiting: 0, inflight: 0, exempt: 0 };

export async function checkAgentQueues(recount: RecountSlices): Promise<void> {
  const { db } = recount;
  let strays = 0;
  await recount.eachPage<AgentQueueRow>(
    recount.counters,
    {
      sql: `select ${AGENT_QUEUE_COLUMNS}, startable, ${headOfAgentQueue("counted_rank", "counted_seq")}
              from line where id > ? order by id limit +?`,
      first: [-1],
      keyOf: ({ id }) => [id],
    },
    (page) => {
      const held = heldByAgentQueue(db);
      const ledger = new Ledger(db);
      for (const agentQueue of page) {
        checkAgentQueue(recount, { agentQueue, held, ledger });
        if (!isTenantInLane(db, agentQueue)) strays += 1;
      }
    },
  );
  recount.compare("agent queues whose tenant is not in their lane", strays, 0);
}

interface CheckParams {
  readonly agentQueue: AgentQueueRow;
  readonly held: ReadonlyMap<number, Held>;
  readonly ledger: Ledger;
}

function checkAgentQueue(recount: RecountSlices, { agentQueue, held, ledger }: CheckParams): void {
  const name = `line ${agentQueue.lane}/${agentQueue.tenant}/${agentQueue.agent}`;
  const counted = countAgentQueue(recount, agentQueue.id, held);
  recount.compare(`${name} waiting`, agentQueue.waiting, counted.waiting);
  recount.compare(`${name} ready`, agentQueue.ready, counted.ready);
  recount.compare(`${name} inflight`, agentQueue.inflight, counted.inflight);
  recount.compare(`${name} exempt`, agentQueue.exempt, counted.exempt);
  recount.compare(`${name} tasks`, agentQueue.tasks, counted.tasks);
  recount.compare(`${name} head_rank`, agentQueue.head_rank, agentQueue.counted_rank);
  recount.compare(`${name} head_seq`, agentQueue.head_seq, agentQueue.counted_seq);
  const room = ledger.room(agentQueue);
  recount.compare(`${name} room`, agentQueue.room, room);
  recount.compare(`${name} startable`, agentQueue.startable, room > 0 ? 1 : 0);
  recount.compare(`${name} ahead`, agentQueue.ahead, ledger.isAhead(agentQueue) ? 1 : 0);
}

export async function checkLanes(recount: RecountSlices): Promise<void> {
  const { db } = recount;
  const sums = sumsByLane(recount);
  const second = db.prepare("select 1 from tenant where disabled = 0 limit 1 offset 1").get();
  const lanes = db
    .prepare<{ name: string; waiting: number; inflight: number; exempt: number; second_tenant: 0 | 1 }>(
      "select * from lane",
    )
    .all();
  for (const lane of lanes) {
    const counted = sums.get(lane.name) ?? EMPTY_LANE;
    recount.compare(`lane ${lane.name} waiting`, lane.waiting, counted.waiting);
    recount.compare(`lane ${lane.name} inflight`, lane.inflight, counted.inflight);
    recount.compare(`lane ${lane.name} exempt`, lane.exempt, counted.exempt);
    recount.compare(`lane ${lane.name} second_tenant`, lane.second_tenant, second === undefined ? 0 : 1);
  }
  await recount.sliceDone(sums.size);
}

/** Compares tenants with their agent queues, one tenant in one lane per slice, since it may have many queues. */
export async function checkTenants(recount: RecountSlices): Promise<void> {
  let strays = 0;
  await recount.eachPage<{ id: number; stray: 0 | 1 }>(
    1,
    {
      sql: `select n.id,
                   (n.max_queued, n.max_inflight, n.lane_max, n.disabled)
                     is not (t.max_queued, t.max_inflight, l.per_tenant, coalesce(t.disabled, 0))
                     or not exists (select 1 from line s where s.tenant = n.tenant) as stray
              from tenant_line n left join tenant t on t.id = n.tenant
              left join lane l on l.name = n.lane and l.second_tenant = 1
             where n.id > ? order by n.id limit +?`,
      first: [-1],
      keyOf: ({ id }) => [id],
    },
    (page) => {
      for (const { id, stray } of page) {
        strays += stray;
        recount.faults.push(...tenantFaults(recount.db, "id = ?", [id]));
      }
    },
  );
  recount.compare("tenants that are not as their rows and lines say", strays, 0);
}

function sumsByLane(recount: RecountSlices): Map<string, LaneSum> {
  recount.catchUp();
  const held = heldByAgentQueue(recount.db);
  // Read again: the id of an agent queue that was deleted meanwhile may belong to a new one, in another lane.
  const agentQueues = recount.db
    .prepare<{ id: number; lane: string; disabled: 0 | 1 }>(
      `select id, lane, exists (select 1 from tenant t where t.id = line.tenant and t.disabled = 1) as disabled
         from line`,
    )
    .all();
  const sums = new Map<string, LaneSum>();
  for (const { id, lane, disabled } of agentQueues) {
    const counted = countAgentQueue(recount, id, held);
    const sum = sums.get(lane) ?? { ...EMPTY_LANE };
    sum.waiting += counted.waiting;
    sum.inflight += counted.inflight;
    sum.exempt += disabled === 1 ? counted.waiting : counted.exempt;
    sums.set(lane, sum);
  }
  return sums;
}

function countAgentQueue({ census }: RecountSlices, id: number, held: ReadonlyMap<number, Held>) {
  const { tasks, early, parked, queued, exempt } = census.counts.ofAgentQueue(id);
  const own = held.get(id) ?? NOTHING_HELD;
  const ready = queued - own.queued;
  return {
    tasks,
    ready,
    waiting: ready + early + parked,
    inflight: own.tasks,
    exempt: exempt - own.exempt,
  };
}

function heldByAgentQueue(db: SqliteDatabase): Map<number, Held> {
  const rows = db
    .prepare<Held & { line: number }>(
      `select l.line, count(*) as tasks, sum(t.resting_state = 'queued' and t.parked is null) as queued,
              sum(t.completed_at is null and t.origin <> 'task') as exempt
         from lease l join task t on t.seq = l.task_seq group by l.line`,
    )
    .all();
  return new Map(rows.map((row) => [row.line, row]));
}

function isTenantInLane(db: SqliteDatabase, { tenant, lane }: AgentQueue): boolean {
  return (
    db.prepare("select 1 from tenant_line where tenant = ? and lane = ?").get(tenant, lane) !== undefined
  );
}
