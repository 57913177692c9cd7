import { PREEMPTIONS_MAX, rankOf } from "../../../../model/priority.ts";
import { jsonText } from "../../../../model/text/json-text.ts";
import { rejectionError } from "../../../admission.ts";
import type { FullQueue, InsertedTask, NewTask } from "../../../storage.ts";
import type { Transaction } from "../../connection/transaction.ts";
import { agentQueueKindOf, UNSERVED } from "../../counters/standing.ts";
import { admitAtOnce } from "../../sessions/steps/settle-sessions.ts";
import { addDependencies, findParents, NO_PARENTS } from "./add-dependencies.ts";
import { type Admission, countAdmitted, refuse } from "./admit-task.ts";
import { enterQueue } from "./enter-queue.ts";
import { keepKey } from "./keep-key.ts";

/**
 * Reserves room in the row for what the end of the task will write: three times, the outcome, the node and a short result. It
 * is stored in `last_node`, which is not used until an attempt has ended the task. Rows fill their pages without a gap. A row
 * that grew would split its page, and twice as many pages would be written: that costs more than the reserved room.
 */
const ROOM_FOR_END = " ".repeat(64);

export function insertTask(tx: Transaction, task: NewTask, admission: Admission): InsertedTask {
  const { ledger, now } = tx;
  const { kind } = task.spec.work;
  const agentQueue = ledger.agentQueueOf(
    task.lane,
    task.tenant,
    task.agent,
    agentQueueKindOf(tx.db, { ...task, kind }),
  );
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
    ...(rejection === null && agentQueue.standing === UNSERVED ? { unserved: true } : {}),
  };
  const inSession = answer.state === "queued" && session !== null && admitAtOnce(session) ? 1 : 0;
  const error = rejection === null ? null : rejectionError(rejection.full);
  const rank = rankOf(
    { priority: task.priority, createdAt: now, runAt: task.runAt },
    ledger.lane(task.lane).aging_ms,
  );
  tx.prepare(
    `insert into task (seq, id, tenant, agent, line, priority, rank, resting_state, position, created_at, run_at,
                       deadline, deadline_after_ms, max_retries_if_lost, completed_at, batch, callback_url, dependencies, unmet,
                       preemptions_left, session, origin, place, in_session, schedule, concurrency_key, spec, error,
                       full_queue, last_node, parent_task, root_task)
     values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  ).run(
    answer.seq,
    task.id,
    task.tenant,
    task.agent,
    agentQueue.id,
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
    rejection?.full ?? null,
    rejection === null ? ROOM_FOR_END : null,
    task.spec.within?.taskId ?? null,
    task.spec.within?.rootTaskId ?? null,
  );
  agentQueue.tasks += 1;
  if (rejection === null) {
    if (task.origin === "task") countAdmitted(tx, admission, task);
    ledger.countWaiting(agentQueue, { origin: task.origin, session: session?.id ?? null }, 1);
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
      line: agentQueue.id,
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

/** The default deadline counts from when the task could first start. */
function defaultDeadline(task: NewTask, now: number): number | null {
  if (task.deadlineAfterMs === null) return null;
  return Math.max(now, task.runAt ?? now) + task.deadlineAfterMs;
}

/** The result for a task that an earlier insert, whose response got lost, has already stored. */
export function alreadyInserted(tx: Transaction, id: string): InsertedTask | null {
  const row = tx
    .prepare<{
      seq: number;
      resting_state: string;
      position: number;
      created_at: number;
      run_at: number | null;
      deadline: number | null;
      full_queue: FullQueue | null;
      standing: number;
    }>(
      `select t.seq, t.resting_state, t.position, t.created_at, t.run_at, t.deadline, t.full_queue, n.standing
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
    rejection: row.full_queue === null ? null : { full: row.full_queue, queued: 0 },
    repeats: null,
    ...(!rejected && row.standing === UNSERVED ? { unserved: true } : {}),
  };
}
