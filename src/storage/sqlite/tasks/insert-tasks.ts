import Sqlite from "better-sqlite3";
import { PREEMPTIONS_MAX, rankOf } from "../../../model/priority.ts";
import { jsonText } from "../../../model/text/json-text.ts";
import { fullQueueOf, rejectionError } from "../../admission.ts";
import { batchConflict } from "../../batch-conflict.ts";
import type { AdmissionLimits, InsertedTask, InsertTasksParams, NewBatch, NewTask } from "../../storage.ts";
import type { SqliteDatabase } from "../connection/database.ts";
import type { Transaction } from "../connection/transaction.ts";
import type { LaneRow, Ledger } from "../counters/ledger.ts";
import { lineKindOf, UNSERVED } from "../counters/standing.ts";
import { letInAtOnce } from "../sessions/settle-sessions.ts";
import { addBatch, forgetEmptyBatch } from "./batches.ts";
import { addDependencies, findParents, NO_PARENTS } from "./dependencies.ts";
import { enterQueue } from "./enter-queue.ts";
import { findByKey, keepKey } from "./idempotency-keys.ts";
import { enterTasksOfLines } from "./task-of-line.ts";

/**
 * Reserves room in the row for what the end of the task will write: three times, the outcome, the node and a short result. It
 * is stored in `last_node`, which is not used until an attempt has ended the task. Rows fill their pages without a gap. A row
 * that grew would split its page, and twice as many pages would be written: that costs more than the reserved room.
 */
const ROOM_FOR_END = " ".repeat(64);

/** Inserts new tasks, each admitted or rejected by itself. */
export async function insertTasks(db: SqliteDatabase, params: InsertTasksParams): Promise<InsertedTask[]> {
  const inserted = insertOnce(db, params);
  enterTasksOfLines(db, db.lastTaskSeq);
  await db.durable();
  return inserted;
}

function insertOnce(db: SqliteDatabase, params: InsertTasksParams): InsertedTask[] {
  try {
    return writeTasks(db, params, () => null);
  } catch (error) {
    // Looking up every id first would cost each insert a search for what almost never happens.
    if (!isDoubledId(error)) throw error;
    return writeTasks(db, params, (id) => alreadyInserted(db, id));
  }
}

function writeTasks(
  db: SqliteDatabase,
  { tasks, batches = [], limits }: InsertTasksParams,
  known: (id: string) => InsertedTask | null,
): InsertedTask[] {
  return db.transact((tx) => {
    for (const batch of batches) addBatch(tx, batch);
    const admission: Admission = { ...limits, waiting: waitingIn(tx.ledger.allLanes()), queued: new Map() };
    const inserted = tasks.map(
      (task) => findByKey(tx, task) ?? known(task.id) ?? insertTask(tx, task, admission),
    );
    refuseConflicts(tasks, inserted, batches);
    for (const { id } of batches) forgetEmptyBatch(tx, id);
    tx.save();
    const answers = inserted.map((answer) => asItIsNow(tx, answer));
    tx.signal("events");
    if (answers.some(({ state }) => state === "queued")) tx.signal("work");
    if (answers.some(({ runAt, deadline }) => runAt !== null || deadline !== null)) tx.signal("due");
    return answers;
  });
}

/** How many tasks wait in all lanes, as admission counts them: without those of disabled tenants. */
function waitingIn(lanes: ReadonlyMap<string, LaneRow>): number {
  let sum = 0;
  for (const { waiting, exempt } of lanes.values()) sum += waiting - exempt;
  return sum;
}

/**
 * A batch is inserted whole or not at all: if one of its tasks has a key that was used for another request, the whole call
 * fails.
 */
function refuseConflicts(
  tasks: readonly NewTask[],
  inserted: readonly InsertedTask[],
  batches: readonly NewBatch[],
): void {
  for (const [place, { id, repeats }] of inserted.entries()) {
    const task = tasks[place];
    if (repeats === "other" && task !== undefined && batches.some((batch) => batch.id === task.batch)) {
      throw batchConflict({ taskId: id, refused: task.id });
    }
  }
}

/** The limits, with how many tasks wait so far: of all tenants, and of the tenants of this call. */
export type Admission = AdmissionLimits & {
  waiting: number;
  /** The part of `waiting` that tenants have beyond their half; undefined until it is needed. */
  beyondHalf?: number;
  readonly queued: Map<string, number>;
};

/** For messages, which their session limits, and runs, which their schedule limits: admission neither counts nor rejects them. */
export const NO_ADMISSION: Admission = {
  maxQueueSize: 0,
  maxQueueSizeTotal: 1_000,
  maxPerAgent: 0,
  waiting: 0,
  queued: new Map(),
};

export function insertTask(tx: Transaction, task: NewTask, admission: Admission): InsertedTask {
  const { ledger, now } = tx;
  const { kind } = task.spec.work;
  const line = ledger.lineOf(task.lane, task.tenant, task.agent, lineKindOf(tx.db, { ...task, kind }));
  const agentWaiting = ledger.waitingOfAgent(task.tenant, task.agent);
  const rejection = task.origin === "task" ? refuse(tx, task, { admission, agentWaiting }) : null;
  const session =
    task.session === null
      ? null
      : ledger.sessions.ensure(task.tenant, task.session.key, task.session.maxConcurrent, task.agent);
  if (session !== null) session.last_place += 1;
  const parents = task.dependsOn.length === 0 ? NO_PARENTS : findParents(tx, task);
  const unmet = rejection === null ? parents.unmet : 0;
  const delayed = unmet === 0 && task.runAt !== null && task.runAt > now;
  const answer: InsertedTask = {
    seq: tx.db.nextTaskSeq(),
    id: task.id,
    state:
      rejection !== null ? "rejected" : unmet > 0 ? "waiting_dependency" : delayed ? "delayed" : "queued",
    position: rejection !== null || unmet > 0 || delayed ? 0 : agentWaiting + 1,
    createdAt: now,
    runAt: task.runAt,
    deadline: task.deadline ?? (unmet > 0 ? null : defaultDeadline(task, now)),
    rejection,
    repeats: null,
    ...(rejection === null && line.standing === UNSERVED ? { unserved: true } : {}),
  };
  const inSession = answer.state === "queued" && session !== null && letInAtOnce(session) ? 1 : 0;
  const error = rejection === null ? null : rejectionError(rejection.full);
  const rank = rankOf(
    { priority: task.priority, createdAt: now, runAt: task.runAt },
    ledger.lane(task.lane).aging_ms,
  );
  tx.prepare(
    `insert into task (seq, id, tenant, agent, line, priority, rank, resting_state, position, created_at, run_at,
                       deadline, deadline_after_ms, max_retries_if_lost, completed_at, batch, callback_url, dependencies, unmet,
                       preemptions_left, session, origin, place, in_session, schedule, concurrency_key, spec, error,
                       last_node)
     values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  ).run(
    answer.seq,
    task.id,
    task.tenant,
    task.agent,
    line.id,
    task.priority,
    rank,
    answer.state,
    answer.position,
    now,
    task.runAt,
    answer.deadline,
    task.deadline === null ? task.deadlineAfterMs : null,
    task.maxRetriesIfLost,
    rejection === null ? null : now,
    task.batch,
    task.callbackUrl,
    task.dependsOn.length,
    unmet,
    task.preemptible ? PREEMPTIONS_MAX : 0,
    session?.id ?? null,
    task.origin,
    session?.last_place ?? null,
    inSession,
    task.schedule,
    task.concurrencyKey,
    jsonText(task.spec),
    error,
    rejection === null ? ROOM_FOR_END : null,
  );
  line.tasks += 1;
  if (rejection === null) {
    if (task.origin === "task") countAdmitted(ledger, admission, task);
    ledger.countWaiting(line, { origin: task.origin, session: session?.id ?? null }, 1);
    const batch = ledger.batches.of(task);
    if (batch !== undefined) batch.open += 1;
  } else if (task.batch !== null) {
    // The rejection may complete the batch, so the ledger has to read it.
    ledger.batches.of(task);
  }
  ledger.count(task.tenant, answer.state, 1);
  ledger.events.add({
    type: rejection === null ? "task.created" : "task.rejected",
    at: now,
    tenant: task.tenant,
    taskSeq: answer.seq,
    data: error === null ? { state: answer.state } : { error },
  });
  if (answer.state === "queued")
    enterQueue(tx, {
      seq: answer.seq,
      line: line.id,
      rank,
      batch: task.batch,
      session: session?.id ?? null,
      place: session?.last_place ?? null,
      in_session: inSession,
      concurrency_key: task.concurrencyKey,
    });
  if (rejection === null) keepKey(tx, task, answer.seq);
  if (task.dependsOn.length > 0 && rejection === null) addDependencies(tx, answer.seq, parents);
  return answer;
}

function refuse(
  tx: Transaction,
  { lane, tenant, agent, maxQueued }: NewTask,
  { admission, agentWaiting }: { admission: Admission; agentWaiting: number },
): InsertedTask["rejection"] {
  const { ledger } = tx;
  const { max_queued: maxOfTenant, disabled } = ledger.tenants.of({ lane, tenant });
  // Reports only the tenant's own tasks: it must not learn how many tasks of other tenants wait.
  const queued = queuedOf(ledger, admission, tenant);
  if (disabled === 0 && isFullForAll(tx, admission)) return { full: "server", queued };
  if (queued >= (maxOfTenant ?? admission.maxQueueSize)) return { full: "global", queued };
  if (queued >= halfOf(admission) && hasSecondTenant(tx)) return { full: "server", queued };
  const queuedOfAgent = agentWaiting - ledger.exemptOfAgent(tenant, agent);
  if (queuedOfAgent >= (maxQueued ?? admission.maxPerAgent)) return { full: "agent", queued: queuedOfAgent };
  return null;
}

function queuedOf(ledger: Ledger, { queued }: Admission, tenant: string): number {
  let own = queued.get(tenant);
  if (own === undefined) {
    own = ledger.tenants.queued(tenant, ledger.allLanes());
    queued.set(tenant, own);
  }
  return own;
}

function countAdmitted(ledger: Ledger, admission: Admission, { lane, tenant }: NewTask): void {
  admission.queued.set(tenant, queuedOf(ledger, admission, tenant) + 1);
  if (ledger.tenants.of({ lane, tenant }).disabled === 0) admission.waiting += 1;
}

/** The share of the total queue that one tenant may fill while a second enabled tenant exists. */
function halfOf({ maxQueueSizeTotal }: Admission): number {
  return Math.floor(maxQueueSizeTotal / 2);
}

/**
 * If a tenant has more than its half, which retries can cause, only the half counts. Few calls need this sum, so it is computed
 * only when it decides. No admitted task brings its tenant beyond its half, so the sum stays valid for the rest of the call.
 */
function isFullForAll(tx: Transaction, admission: Admission): boolean {
  if (admission.waiting < admission.maxQueueSizeTotal) return false;
  admission.beyondHalf ??= hasSecondTenant(tx) ? beyondHalf(tx, halfOf(admission)) : 0;
  return admission.waiting - admission.beyondHalf >= admission.maxQueueSizeTotal;
}

/** The sum of waiting tasks that enabled tenants have beyond their half, before this transaction. */
function beyondHalf(tx: Transaction, half: number): number {
  const row = tx
    .prepare<{ beyond: number }>(
      `select coalesce(sum(queued - @half), 0) as beyond
         from (select sum(waiting - exempt) as queued from tenant_line where disabled = 0 group by tenant)
        where queued > @half`,
    )
    .get({ half });
  return row?.beyond ?? 0;
}

function hasSecondTenant(tx: Transaction): boolean {
  return tx.prepare("select 1 from tenant where disabled = 0 limit 1 offset 1").get() !== undefined;
}

/** The default deadline counts from when the task could first start. */
function defaultDeadline(task: NewTask, now: number): number | null {
  if (task.deadlineAfterMs === null) return null;
  return Math.max(now, task.runAt ?? now) + task.deadlineAfterMs;
}

function isDoubledId(error: unknown): boolean {
  return error instanceof Sqlite.SqliteError && error.code === "SQLITE_CONSTRAINT_UNIQUE";
}

/** The state of a task at the end of the transaction that inserted it: a dependency that had failed may have cancelled it. */
function asItIsNow(tx: Transaction, answer: InsertedTask): InsertedTask {
  if (answer.state !== "waiting_dependency") return answer;
  const row = tx
    .prepare<{ state: InsertedTask["state"] }>("select resting_state as state from task where seq = ?")
    .get(answer.seq);
  return row === undefined ? answer : { ...answer, state: row.state };
}

/** The result for a task that an earlier insert, whose response got lost, has already stored. */
export function alreadyInserted(db: SqliteDatabase, id: string): InsertedTask | null {
  const row = db
    .prepare<{
      seq: number;
      resting_state: string;
      position: number;
      created_at: number;
      run_at: number | null;
      deadline: number | null;
      error: string | null;
      standing: number;
    }>(
      `select t.seq, t.resting_state, t.position, t.created_at, t.run_at, t.deadline, t.error, n.standing
         from task t join line n on n.id = t.line where t.id = ?`,
    )
    .get(id);
  if (row === undefined) return null;
  const rejected = row.resting_state === "rejected";
  const waits = row.resting_state === "waiting_dependency" ? "waiting_dependency" : "delayed";
  return {
    seq: row.seq,
    id,
    state: rejected ? "rejected" : row.position === 0 ? waits : "queued",
    position: row.position,
    createdAt: row.created_at,
    runAt: row.run_at,
    deadline: row.deadline,
    rejection: rejected ? { full: fullQueueOf(row.error), queued: 0 } : null,
    repeats: null,
    ...(!rejected && row.standing === UNSERVED ? { unserved: true } : {}),
  };
}
