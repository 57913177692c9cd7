import { isAloneKind } from "../../alone-queue.ts";
import { KEYS_LOOKED_AT } from "../../storage.ts";
import { isForWorkers } from "../connection/abilities.ts";
import {
  agentQueueOf,
  becomeReady,
  byRank,
  isReady,
  type OracleAgentQueue,
  type OracleLane,
  type OracleState,
  type OracleTask,
  signal,
} from "../state.ts";
import { fillBatches, hasBatchSlot } from "./batches.ts";
import { agentRoom, hasRoom, isFull, shareRoom, tenantRoom } from "./room.ts";

interface KeyName {
  readonly tenant: string;
  readonly concurrencyKey: string | null;
}

/** The task that holds this key: ready or claimed. */
export function holderOf(state: OracleState, key: KeyName): OracleTask | undefined {
  return state.tasks.find((task) => isOfKey(task, key) && (isReady(task) || task.held !== null));
}

/** Assigns free slots of batches and free keys. */
export function settleBatchesAndKeys(state: OracleState): void {
  settleKeys(state);
  // A task that does not get its key gives up its slot in its batch. The task that gets the slot may want a key, too.
  do fillBatches(state);
  while (settleKeys(state));
}

/** Assigns each key. Returns whether a task asked for one, because that task may have given up its slot in its batch. */
function settleKeys(state: OracleState): boolean {
  const keys = keysOf(state.tasks.filter(({ parked }) => parked === "asking" || parked === "key"));
  const asked = keys.map((key) => settleKey(state, key));
  return asked.includes(true);
}

function settleKey(state: OracleState, key: KeyName): boolean {
  const asking = state.tasks.filter((task) => isOfKey(task, key) && task.parked === "asking").sort(byRank);
  const holder = holderOf(state, key);
  if (holder === undefined) giveAway(state, key);
  else if (holder.held === null && asking[0] !== undefined && asking[0].rank < holder.rank) {
    holder.parked = "key";
    becomeReady(state, asking[0]);
  }
  for (const task of asking) if (task.parked === "asking") task.parked = "key";
  return asking.length > 0;
}

/** The first task that wants the key gets it. A task that gave up its slot in its batch while it waited needs a slot again. */
function giveAway(state: OracleState, key: KeyName): void {
  const wanting = state.tasks
    .filter((task) => isOfKey(task, key) && (task.parked === "asking" || task.parked === "key"))
    .sort(byRank);
  for (const task of wanting) {
    if (task.parked === "asking" || hasBatchSlot(state, task.batch)) {
      becomeReady(state, task);
      signal(state, { kind: "work" });
      return;
    }
    task.parked = "batch";
  }
}

/**
 * Takes keys from tasks that are ready but cannot start, and gives them to others that could start in this lane. Returns whether
 * it gave any. Drivers check a limited number of keys; the next call continues with the others. `leftFor`: how many slots of the
 * lane a tenant may still take on the claiming node.
 */
export function passKeysOn(
  state: OracleState,
  lane: OracleLane,
  leftFor: (tenant: string) => number,
): boolean {
  if (!hasRoom(state, lane)) return false;
  const holders = keysOf(state.tasks.filter(({ parked }) => parked === "key")).flatMap(
    (key) => holderOf(state, key) ?? [],
  );
  const passed = holders
    .filter(({ tenant }) => Math.min(shareRoom(state, lane, tenant), leftFor(tenant)) > 0)
    .map((holder) => passOn(state, lane, holder));
  settleBatchesAndKeys(state);
  return passed.includes(true);
}

/** Whether a task waits for a key whose holder has not started. */
export function isAnyKeyWanted(state: OracleState): boolean {
  return state.tasks.some((task) => task.parked === "key" && holderOf(state, task)?.held === null);
}

function passOn(state: OracleState, lane: OracleLane, holder: OracleTask): boolean {
  if (holder.held !== null || tenantRoom(state, holder.tenant) === 0) return false;
  if (canStart(state, lane, holder)) return false;
  const next = state.tasks
    .filter((task) => isOfKey(task, holder) && task.parked === "key")
    .sort(byRank)
    .slice(0, KEYS_LOOKED_AT.waiting)
    .filter((task) => task.lane === lane.name && isRunnable(state, agentQueueOf(state, task)))
    .filter((task) => agentRoom(state, lane, task) > 0)
    .find((task) => task.batch === holder.batch || hasBatchSlot(state, task.batch));
  if (next === undefined) return false;
  if (isRunByWorkers(state, agentQueueOf(state, next))) signal(state, { kind: "work" });
  holder.parked = "key";
  becomeReady(state, next);
  return true;
}

/** Whether limits let a ready task start, while the lane that is claimed from has room. */
function canStart(state: OracleState, claimed: OracleLane, task: OracleTask): boolean {
  const lane = state.lanes.get(task.lane);
  if (lane === undefined || agentRoom(state, lane, task) === 0) return false;
  const agentQueue = agentQueueOf(state, task);
  if (!isRunnable(state, agentQueue)) return false;
  if (lane === claimed) return true;
  // The slots of nodes do not matter for workers.
  if (isRunByWorkers(state, agentQueue))
    return hasRoom(state, lane) && shareRoom(state, lane, task.tenant) > 0;
  return !isFull(state, lane, task.tenant);
}

/** Whether live nodes or workers can run the tasks of an agent queue, beside others. */
function isRunnable(state: OracleState, agentQueue: OracleAgentQueue): boolean {
  return agentQueue.standing === "executable" || isRunByWorkers(state, agentQueue);
}

function isRunByWorkers(state: OracleState, agentQueue: OracleAgentQueue): boolean {
  return !isAloneKind(agentQueue.kind) && isForWorkers(state, agentQueue);
}

function isOfKey(task: OracleTask, key: KeyName): boolean {
  return task.tenant === key.tenant && task.concurrencyKey === key.concurrencyKey;
}

/** The keys of tasks, each once, in order. */
function keysOf(tasks: readonly OracleTask[]): KeyName[] {
  const keys = new Map(
    tasks.map(({ tenant, concurrencyKey }) => [
      JSON.stringify([tenant, concurrencyKey]),
      { tenant, concurrencyKey: concurrencyKey ?? "" },
    ]),
  );
  return [...keys.values()].sort(
    (a, b) => compare(a.tenant, b.tenant) || compare(a.concurrencyKey, b.concurrencyKey),
  );
}

function compare(a: string, b: string): number {
  return a === b ? 0 : a < b ? -1 : 1;
}
