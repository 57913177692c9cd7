import { PRIORITY_CRITICAL } from "../../../model/priority.ts";
import { NOT_POLLING_MS } from "../../../model/worker.ts";
import { ALL_AGENTS } from "../../storage.ts";
import type { SqliteDatabase } from "../connection/database.ts";
import type { Transaction } from "../connection/transaction.ts";
import type { AgentQueue, ReadyEntry } from "../counters/ledger.ts";
import { criticalQueuesForWorkers } from "../counters/standing.ts";
import { LEASE_COLUMNS, type Lease } from "../tasks/lease.ts";
import { giveWay } from "../tasks/steps/preempt-tasks.ts";

interface Critical {
  readonly agentQueue: AgentQueue;
  readonly entry: ReadyEntry;
}

interface AbleWorker {
  readonly id: string;
  readonly free: number;
}

/** Pre-empts running tasks of workers for critical ones that find no free slot. */
export async function preemptForWorkers(
  db: SqliteDatabase,
  { limit }: { limit: number },
): Promise<{ preempted: number }> {
  // Usually there are no such agent queues.
  if (criticalQueuesForWorkers(db).length === 0) return { preempted: 0 };
  return db.transact((tx) => {
    const tokens = preemptAll(tx, limit);
    tx.settle();
    // The tasks that were put back are not new critical tasks.
    tx.ledger.newCriticalTasks.length = 0;
    tx.save();
    if (tokens.length > 0) {
      tx.fence(tokens, "preempted");
      tx.signal("events", "work");
    }
    return { preempted: tokens.length };
  });
}

function preemptAll(tx: Transaction, limit: number): number[] {
  const { ledger } = tx;
  const reserved = new Map<string, number>();
  const free = new Map<string, number>();
  const tokens: number[] = [];
  for (const { agentQueue, entry } of criticals(tx, limit)) {
    const { lane: name } = agentQueue;
    ledger.countTenants();
    if (ledger.tenants.shareRoom(ledger.tenants.of(agentQueue)) < 0) continue;
    const able = ableWorkers(tx, agentQueue);
    const worker = able.find(({ id, free: slots }) => slots - (reserved.get(id) ?? 0) > 0);
    const lane = ledger.lane(name);
    const laneFree = free.get(name) ?? (lane.total ?? Number.POSITIVE_INFINITY) - lane.inflight;
    if (worker !== undefined && laneFree > 0) {
      reserved.set(worker.id, (reserved.get(worker.id) ?? 0) + 1);
      free.set(name, laneFree - 1);
      continue;
    }
    const victim = findVictim(tx, agentQueue, able);
    if (victim === undefined) continue;
    free.set(name, laneFree);
    reserved.set(victim.node, (reserved.get(victim.node) ?? 0) + 1);
    giveWay(tx, victim, entry);
    tokens.push(victim.token);
    const tenant = ledger.tenants.of(agentQueue);
    tenant.preemptionCredit += 1;
    if (lane.strategy === "fair-fifo") tenant.ahead_streak -= 1;
  }
  return tokens;
}

/** By lane, then by rank, as far as the limits of their agents allow. */
function criticals(tx: Transaction, limit: number): Critical[] {
  const { ledger } = tx;
  const first = tx.prepare<ReadyEntry>(
    `select rank, task_seq from ready where line = ? and rank <= ${PRIORITY_CRITICAL} order by rank, task_seq limit +?`,
  );
  const all = ledger
    .agentQueuesOf(criticalQueuesForWorkers(tx.db))
    .filter((agentQueue) => ledger.tenants.of(agentQueue).disabled === 0)
    .flatMap((agentQueue) =>
      first.all(agentQueue.id, limit).map((entry, nth) => ({
        agentQueue,
        entry,
        isUsable: nth < ledger.roomForWorkers(agentQueue),
      })),
    )
    .sort(
      (a, b) =>
        compare(a.agentQueue.lane, b.agentQueue.lane) ||
        a.entry.rank - b.entry.rank ||
        a.entry.task_seq - b.entry.task_seq,
    );
  return all.slice(0, limit).filter(({ isUsable }) => isUsable);
}

function ableWorkers(tx: Transaction, { tenant, agent }: AgentQueue): AbleWorker[] {
  return tx
    .prepare<AbleWorker>(
      `select * from (
         select w.id, w.slots - (select count(*) from lease l where l.node = w.id) as free, max(w.registered_at, coalesce(w.polled_at, 0)) as asked_at
           from worker w where w.draining = 0 and w.id in (
             select worker from worker_agent where tenant = ? and agent in (select value from json_each(?))))
        where free <= 0 or asked_at >= ? order by id`,
    )
    .all(tenant, JSON.stringify([agent, ALL_AGENTS]), tx.now - NOT_POLLING_MS);
}

function findVictim(
  tx: Transaction,
  { lane, tenant }: AgentQueue,
  able: readonly AbleWorker[],
): Lease | undefined {
  const columns = LEASE_COLUMNS.split(", ").map((column) => `l.${column}`);
  return tx
    .prepare<Lease>(
      `select ${columns} from lease l indexed by lease_preemptible join line n on n.id = l.line
        where l.preemptible = 1 and n.lane = ? and n.tenant = ? and l.node in (select value from json_each(?))
        order by l.priority desc, l.token desc limit 1`,
    )
    .get(lane, tenant, JSON.stringify(able.map(({ id }) => id)));
}

function compare(a: string, b: string): number {
  return a === b ? 0 : a < b ? -1 : 1;
}
