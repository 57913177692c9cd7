import { FRONT_RANK, isCritical, PRIORITY_CRITICAL } from "../../../../model/priority.ts";
import { preemptionError } from "../../../preemption-error.ts";
import type { ServingNode } from "../../connection/nodes-of-lane.ts";
import type { Transaction } from "../../connection/transaction.ts";
import type { AgentQueue, LaneRow, Ledger, ReadyEntry } from "../../counters/ledger.ts";
import type { TenantQueue } from "../../counters/tenant-ledger.ts";
import { shareOut } from "../../tenants/steps/share-out.ts";
import { NodeShares } from "../../tenants/tenant-shares.ts";
import { LEASE_COLUMNS, type Lease } from "../lease.ts";
import { candidateAgentQueues } from "./claim-tasks.ts";
import { closeAttempt, freeSlot, returnMessages } from "./end-attempt.ts";
import { settleMoves } from "./settle-moves.ts";

/**
 * Pre-empts a running task for each critical task that finds no free slot. It checks the lanes where a critical task became
 * ready in this transaction, and those where a waiting one may have lost the slot it waited for. This is the last step before
 * the ledger is saved: critical tasks that were claimed in the same transaction need no slot any more.
 */
export function preemptTasks(tx: Transaction): void {
  const { ledger } = tx;
  if (ledger.newCriticalTasks.length === 0 && ledger.lanesToRecheck.size === 0) return;
  const isReady = tx.prepare("select 1 from ready where line = ? and rank = ? and task_seq = ?");
  const newCriticalTasks = ledger.newCriticalTasks.filter(
    ({ agentQueue, entry }) => isReady.get(agentQueue.id, entry.rank, entry.task_seq) !== undefined,
  );
  const lanes = new Set([
    ...ledger.lanesToRecheck,
    ...newCriticalTasks.map(({ agentQueue }) => agentQueue.lane),
  ]);
  const tokens = [...lanes].sort().flatMap((lane) =>
    preemptIn(
      tx,
      ledger.lane(lane),
      newCriticalTasks.filter(({ agentQueue }) => agentQueue.lane === lane),
    ),
  );
  // The pre-empted tasks themselves must not cause further checks.
  ledger.newCriticalTasks.length = 0;
  ledger.lanesToRecheck.clear();
  if (tokens.length === 0) return;
  // The session of a pre-empted task may run fewer by now and park it, and its key may go to another task.
  settleMoves(tx);
  tx.fence(tokens, "preempted");
  tx.signal("events", "work", "due");
}

/** A critical task that is ready. */
type Critical = Ledger["newCriticalTasks"][number];

function preemptIn(tx: Transaction, lane: LaneRow, newCriticalTasks: readonly Critical[]): number[] {
  const { ledger } = tx;
  const yielding = yieldingTasks(tx, lane);
  if (yielding.length === 0) return [];
  const shares = new NodeShares(tx.db, lane);
  // A node that runs more tasks than it has slots would not fill a slot that becomes free.
  const nodes = shares.nodes.filter(({ free }) => free >= 0);
  const heldByAgent = new Set(
    newCriticalTasks.filter(
      (arrival) =>
        ledger.tenants.of(arrival.agentQueue).disabled === 0 &&
        arrival.agentQueue.standing === 0 &&
        isHeldByAgent(tx, arrival),
    ),
  );
  // All needs are computed before the first task is pre-empted.
  const free = freeSlots(lane, nodes);
  const needs = [...heldByAgent, ...findUnseated(tx, lane, { free, shares, yielding })];
  const tokens: number[] = [];
  for (const need of needs.sort((a, b) => byRank(a.entry, b.entry))) {
    const { tenant: owner } = need.agentQueue;
    // A tenant that holds more than its share could not use the freed slot.
    if (ledger.tenants.shareRoom(ledger.tenants.of(need.agentQueue)) < 0) continue;
    const usable = nodes.filter((node) => shares.roomOn(node, owner) >= 0);
    const victim = findVictim(tx, need.agentQueue, { nodes: usable, ofSameAgent: heldByAgent.has(need) });
    if (victim === undefined) continue;
    giveWay(tx, victim, need.entry);
    tokens.push(victim.token);
    // The freed slot belongs to the tenant, for a critical task: one more of its starts may go ahead of fairness.
    const tenant = ledger.tenants.of(need.agentQueue);
    tenant.preemptionCredit += 1;
    if (lane.strategy === "fair-fifo") tenant.ahead_streak -= 1;
  }
  return tokens;
}

/** How many running tasks of a tenant could be pre-empted. */
interface Yielding {
  readonly tenant: string;
  readonly tasks: number;
}

/** How many running tasks of each tenant in a lane could be pre-empted. */
function yieldingTasks(tx: Transaction, lane: LaneRow): Yielding[] {
  return tx
    .prepare<Yielding>(
      `select n.tenant, count(*) as tasks from lease l indexed by lease_preemptible join line n on n.id = l.line
        where l.preemptible = 1 and n.lane = ? group by n.tenant`,
    )
    .all(lane.name);
}

/** The free slots of a lane over all nodes. */
function freeSlots(lane: LaneRow, nodes: readonly ServingNode[]): number {
  const free = nodes.reduce((sum, node) => sum + node.free, 0);
  return Math.max(Math.min(free, (lane.total ?? Number.POSITIVE_INFINITY) - lane.inflight), 0);
}

/**
 * The critical tasks that their agents have room for, but that exceed their tenant's share of the free slots: for each tenant
 * at most as many as it has tasks that could be pre-empted.
 */
function findUnseated(
  tx: Transaction,
  lane: LaneRow,
  { free, shares, yielding }: { free: number; shares: NodeShares; yielding: readonly Yielding[] },
): Critical[] {
  const { ledger } = tx;
  const left = shares.slotsLeft;
  // If there are at least as many free slots as waiting tasks, each tenant gets what its own limits allow.
  const turns = free < lane.waiting ? shareOut(tx, lane, { slots: free, left }) : null;
  ledger.countTenants();
  return yielding.flatMap(({ tenant, tasks }) => {
    const own = ledger.tenants.of({ lane: lane.name, tenant });
    if (own.disabled === 1) return [];
    const room = Math.min(ledger.tenants.room(own), left?.of(tenant) ?? Number.POSITIVE_INFINITY);
    const share = turns?.filter((turn) => turn === own).length ?? room;
    return usableCriticals(tx, own, share + tasks).slice(share);
  });
}

/** The first critical tasks of a tenant in a lane that lack only a slot. */
function usableCriticals(tx: Transaction, tenant: TenantQueue, count: number): Critical[] {
  const first = tx.prepare<ReadyEntry>(
    `select rank, task_seq from ready where line = ? and rank <= ${PRIORITY_CRITICAL} order by rank, task_seq limit +?`,
  );
  return candidateAgentQueues(tx, tenant, { count, ahead: true })
    .filter((agentQueue) => agentQueue.standing === 0 && isCritical(agentQueue.head_rank ?? 1))
    .flatMap((agentQueue) =>
      first
        .all(agentQueue.id, Math.min(tx.ledger.roomOfAgent(agentQueue), count))
        .map((entry) => ({ agentQueue, entry })),
    )
    .sort((a, b) => byRank(a.entry, b.entry))
    .slice(0, count);
}

/** Whether the tasks before it use up what its agent may still run. */
function isHeldByAgent(tx: Transaction, { agentQueue, entry }: Critical): boolean {
  const room = tx.ledger.roomOfAgent(agentQueue);
  if (room === Number.POSITIVE_INFINITY) return false;
  const before = tx
    .prepare<{ tasks: number }>(
      `select count(*) as tasks
         from (select 1 from ready where line = ? and (rank, task_seq) < (?, ?) limit +?)`,
    )
    .get(agentQueue.id, entry.rank, entry.task_seq, room);
  return (before?.tasks ?? 0) >= room;
}

/** The task to pre-empt: the least urgent; of several, the one that started last. */
function findVictim(
  tx: Transaction,
  agentQueue: AgentQueue,
  { nodes, ofSameAgent }: { nodes: readonly ServingNode[]; ofSameAgent: boolean },
): Lease | undefined {
  const columns = LEASE_COLUMNS.split(", ").map((column) => `l.${column}`);
  return tx
    .prepare<Lease>(
      `select ${columns} from lease l indexed by lease_preemptible join line n on n.id = l.line
        where l.preemptible = 1 and n.lane = @lane and n.tenant = @tenant and (@anyAgent = 1 or n.agent = @agent)
          and l.node in (select value from json_each(@nodes))
        order by l.priority desc, l.token desc limit 1`,
    )
    .get({
      lane: agentQueue.lane,
      tenant: agentQueue.tenant,
      agent: agentQueue.agent,
      anyAgent: ofSameAgent ? 0 : 1,
      nodes: JSON.stringify(nodes.map(({ node }) => node)),
    });
}

/** Pre-empts a task: queues it again, ahead of all tasks that are not critical. This does not count as a retry. */
export function giveWay(tx: Transaction, lease: Lease, to: ReadyEntry): void {
  const { ledger, now } = tx;
  const { task_seq: taskSeq, attempt } = lease;
  const by = tx.prepare<{ id: string }>("select id from task where seq = ?").get(to.task_seq);
  const error = preemptionError(by?.id ?? "");
  tx.prepare("delete from lease where task_seq = ?").run(taskSeq);
  const agentQueue = freeSlot(tx, lease);
  returnMessages(tx, lease);
  closeAttempt(tx, lease, { outcome: "preempted", error });
  tx.prepare(
    `update task set rank = ?, preemptions_left = preemptions_left - 1, executions = ?,
                     started_at = coalesce(started_at, ?)
      where seq = ?`,
  ).run(FRONT_RANK, attempt, lease.started_at, taskSeq);
  ledger.countWaiting(agentQueue, lease, 1);
  ledger.askForKey({ ...lease, seq: taskSeq, rank: FRONT_RANK });
  ledger.events.add({
    type: "task.preempted",
    at: now,
    tenant: agentQueue.tenant,
    taskSeq,
    data: { attempt, error },
  });
}

function byRank(a: ReadyEntry, b: ReadyEntry): number {
  return a.rank - b.rank || a.task_seq - b.task_seq;
}
