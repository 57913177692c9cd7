import { isAloneKind } from "../../../alone-queue.ts";
import { KEYS_LOOKED_AT } from "../../../storage.ts";
import type { Transaction } from "../../connection/transaction.ts";
import type { MovedKey, WantedTask } from "../../counters/concurrency-key-ledger.ts";
import type { AgentQueue, LaneRow } from "../../counters/ledger.ts";
import { isForWorkers } from "../../counters/standing.ts";
import { NodeShares, type SlotsLeft } from "../../tenants/tenant-shares.ts";
import { leaveBatch } from "./leave-batch.ts";
import { fillBatches } from "./settle-batches.ts";

/** Assigns the batch slots and the keys that this transaction has freed. */
export function settleBatchesAndKeys(tx: Transaction): void {
  settleKeys(tx);
  fillBatches(tx);
  // A task that does not get its key frees its batch slot for another task, which may want a key as well.
  while (!tx.ledger.keys.isSettled) {
    settleKeys(tx);
    fillBatches(tx);
  }
}

function settleKeys(tx: Transaction): void {
  if (tx.ledger.keys.isSettled) return;
  for (const moved of tx.ledger.keys.take()) settleKey(tx, moved);
}

function settleKey(tx: Transaction, moved: MovedKey): void {
  moved.asking.sort(byRank);
  const holder = moved.freed ? undefined : findHolder(tx, moved);
  const [first] = moved.asking;
  if (holder === undefined) {
    giveAway(tx, moved);
  } else if (holder.claimed === 0 && first !== undefined && first.rank < holder.rank) {
    moved.asking.shift();
    stepAside(tx, holder);
    hold(tx, moved, first);
    parkAll(tx, moved, first);
    if (holder.line !== first.line) contest(tx, moved);
  } else {
    parkAll(tx, moved, holder);
  }
}

interface Holder extends WantedTask {
  readonly claimed: 0 | 1;
}

function findHolder(tx: Transaction, { tenant, key }: KeyName): Holder | undefined {
  return tx
    .prepare<Holder>(
      `select t.seq, t.line, t.rank, t.batch, t.concurrency_key, l.task_seq is not null as claimed
         from key_hold h join task t on t.seq = h.task_seq left join lease l on l.task_seq = h.task_seq
        where h.tenant = ? and h.key = ?`,
    )
    .get(tenant, key);
}

interface KeyName {
  readonly tenant: string;
  readonly key: string;
}

/** Gives the key to the first task that wants it. A task that gave up its batch slot while it waited needs a slot again. */
function giveAway(tx: Transaction, moved: MovedKey): void {
  const { tenant, key, freed, asking } = moved;
  const next = freed ? firstWaiting(tx, moved) : undefined;
  const [first] = asking;
  if (next !== undefined && (first === undefined || byRank(next, first) < 0)) {
    returnTo(tx, next);
    hold(tx, moved, next);
    tx.signal("work");
    parkAll(tx, moved, next);
  } else if (first !== undefined) {
    asking.shift();
    hold(tx, moved, first);
    parkAll(tx, moved, first);
    // All earlier waiting tasks are in the agent queue of the last holder, unless the key was contested already.
    const [waits] = waitingFor(tx, moved, 1);
    if (waits !== undefined && waits.line !== first.line) contest(tx, moved);
  } else if (freed) {
    tx.prepare("delete from key_hold where tenant = ? and key = ?").run(tenant, key);
  }
}

/**
 * The first task that waits for a key and whose batch has a free slot. Tasks before it whose batch is full wait for their batch
 * from now on. Undefined: there is none, or the first asking task goes before it.
 */
function firstWaiting(tx: Transaction, { tenant, key, asking }: MovedKey): WantedTask | undefined {
  const [asks] = asking;
  for (;;) {
    const [next] = waitingFor(tx, { tenant, key }, 1);
    if (next === undefined || (asks !== undefined && byRank(asks, next) < 0)) return undefined;
    if (tx.ledger.batches.hasFreeSlot(next)) return next;
    tx.prepare("update task set parked = 'batch' where seq = ?").run(next.seq);
  }
}

function waitingFor(tx: Transaction, { tenant, key }: KeyName, limit: number): WantedTask[] {
  return tx
    .prepare<WantedTask>(
      `select seq, line, rank, batch, concurrency_key from task
        where tenant = ? and concurrency_key = ? and parked = 'key' order by rank, seq limit +?`,
    )
    .all(tenant, key, limit);
}

/** Unparks a task that waited for its key, and takes a batch slot for it. */
function returnTo(tx: Transaction, task: WantedTask): void {
  tx.prepare("update task set parked = null where seq = ?").run(task.seq);
  const batch = tx.ledger.batches.of(task);
  if (batch !== undefined && batch.parallelism !== null) batch.active += 1;
}

/** Gives a task its key and makes it ready. */
function hold(tx: Transaction, { tenant, key }: KeyName, task: WantedTask): void {
  tx.prepare(
    `insert into key_hold (tenant, key, task_seq) values (@tenant, @key, @seq)
     on conflict (tenant, key) do update
       set task_seq = excluded.task_seq,
           contested = contested = 1 and exists (
             select 1 from task where tenant = @tenant and concurrency_key = @key and parked = 'key')`,
  ).run({ tenant, key, seq: task.seq });
  tx.ledger.addReady(tx.ledger.agentQueue(task.line), { rank: task.rank, task_seq: task.seq });
}

/** Parks the other tasks that asked. */
function parkAll(tx: Transaction, moved: MovedKey, holder: WantedTask): void {
  for (const task of moved.asking) park(tx, task);
  if (moved.asking.some(({ line }) => line !== holder.line)) contest(tx, moved);
}

/** Parks a task until it gets its key; it gives up its batch slot. */
function park(tx: Transaction, task: WantedTask): void {
  tx.prepare("update task set parked = 'key' where seq = ?").run(task.seq);
  leaveBatch(tx, task.batch, { ended: false });
}

/** Takes the key from a ready task, which waits for it again. */
function stepAside(tx: Transaction, holder: WantedTask): void {
  tx.ledger.removeReady(tx.ledger.agentQueue(holder.line), { rank: holder.rank, task_seq: holder.seq });
  park(tx, holder);
}

export function contest(tx: Transaction, { tenant, key }: KeyName): void {
  tx.prepare("update key_hold set contested = 1 where tenant = ? and key = ?").run(tenant, key);
  tx.db.mayContest = true;
}

/** Whether tasks of several agent queues want the same key. */
export function isAnyKeyContested(tx: Transaction): boolean {
  return contestedKeys(tx, 1).length > 0;
}

function contestedKeys(tx: Transaction, limit: number): KeyName[] {
  if (!tx.db.mayContest) return [];
  const keys = tx
    .prepare<KeyName>(
      `select tenant, key from key_hold indexed by key_contested
        where contested = 1 and looked_at >= 0 order by looked_at, tenant, key limit +?`,
    )
    .all(limit);
  tx.db.mayContest = keys.length > 0;
  return keys;
}

/** The lane of the claim, and how many of its slots each tenant may still take. */
interface ClaimedLane {
  readonly lane: LaneRow;
  readonly left: SlotsLeft | null;
}

/**
 * Takes keys from ready tasks that cannot start, and gives them to tasks that could start in this lane. Returns whether it gave
 * any.
 */
export function passKeysOn(tx: Transaction, claimed: ClaimedLane, keysMax: number): boolean {
  const { ledger } = tx;
  const { lane } = claimed;
  if (lane.total !== null && lane.inflight >= lane.total) return false;
  const keys = contestedKeys(tx, keysMax);
  if (keys.length === 0) return false;
  if (keys.length === keysMax) {
    const look = tx.prepare("update key_hold set looked_at = ? where tenant = ? and key = ?");
    for (const { tenant, key } of keys) look.run(tx.now, tenant, key);
  }
  ledger.countTenants();
  const shares = new Map<string, NodeShares>();
  const isFull = (agentQueue: AgentQueue): boolean => {
    if (agentQueue.lane === lane.name) return false;
    // The slots of nodes do not matter for workers.
    if (isRunByWorkers(tx, agentQueue)) return isAtTotalOrShare(tx, agentQueue);
    const known = shares.get(agentQueue.lane) ?? new NodeShares(tx.db, ledger.lane(agentQueue.lane));
    shares.set(agentQueue.lane, known);
    return isLaneFull(tx, agentQueue, known);
  };
  const passed = keys.map((key) => passOn(tx, key, { ...claimed, isFull }));
  if (!passed.includes(true)) return false;
  settleBatchesAndKeys(tx);
  return true;
}

function passOn(
  tx: Transaction,
  name: KeyName,
  { lane, left, isFull }: ClaimedLane & { isFull: (agentQueue: AgentQueue) => boolean },
): boolean {
  const { ledger } = tx;
  const holder = findHolder(tx, name);
  if (holder === undefined) throw new Error(`no task holds the key ${name.key}`);
  const held = ledger.agentQueue(holder.line);
  if (holder.claimed === 1 || ledger.tenants.isAtBound(held)) return false;
  const hasRoom = isRunByWorkers(tx, held) ? ledger.roomForWorkers(held) > 0 : ledger.room(held) > 0;
  if (hasRoom && !isFull(held)) return false;
  const waiting = waitingFor(tx, name, KEYS_LOOKED_AT.waiting);
  if (waiting.length === 0)
    tx.prepare("update key_hold set contested = 0 where tenant = ? and key = ?").run(name.tenant, name.key);
  const next = waiting.find((task) => {
    const agentQueue = ledger.agentQueue(task.line);
    if (agentQueue.lane !== lane.name || !couldStart(tx, agentQueue)) return false;
    if (
      Math.min(ledger.tenants.shareRoom(ledger.tenants.of(agentQueue)), left?.of(agentQueue.tenant) ?? 1) <= 0
    )
      return false;
    return task.batch === holder.batch || ledger.batches.hasFreeSlot(task);
  });
  if (next === undefined) return false;
  if (isRunByWorkers(tx, ledger.agentQueue(next.line))) tx.signal("work");
  stepAside(tx, holder);
  returnTo(tx, next);
  hold(tx, name, next);
  return true;
}

/**
 * Whether the lane of an agent queue is full for its tenant: the lane has reached its total, no node has a free slot, or the
 * tenant has reached its share.
 */
function isLaneFull(tx: Transaction, agentQueue: AgentQueue, shares: NodeShares): boolean {
  if (isAtTotalOrShare(tx, agentQueue)) return true;
  return shares.nodes.length > 0 && shares.freeFor(agentQueue.tenant) === 0;
}

function isAtTotalOrShare({ ledger }: Transaction, agentQueue: AgentQueue): boolean {
  const lane = ledger.lane(agentQueue.lane);
  if (lane.total !== null && lane.inflight >= lane.total) return true;
  return ledger.tenants.shareRoom(ledger.tenants.of(agentQueue)) <= 0;
}

/** Whether live workers, and no nodes, run the tasks of an agent queue, beside others. */
function isRunByWorkers(tx: Transaction, { id, kind, standing }: AgentQueue): boolean {
  return standing !== 0 && !isAloneKind(kind) && isForWorkers(tx.db, id);
}

/** Whether an agent queue could start one more task if it were ready, apart from the total of its lane. */
function couldStart(tx: Transaction, agentQueue: AgentQueue): boolean {
  const { ledger } = tx;
  if (!isRunByWorkers(tx, agentQueue)) return ledger.couldStart(agentQueue);
  return ledger.roomForWorkers({ ...agentQueue, ready: agentQueue.ready + 1 }) > 0;
}

function byRank(a: WantedTask, b: WantedTask): number {
  return a.rank - b.rank || a.seq - b.seq;
}
