import { PREEMPTIONS_MAX, rankOf } from "../../../../model/priority.ts";
import { jsonText } from "../../../../model/text/json-text.ts";
import { rejectionError } from "../../../admission.ts";
import type { FullQueue, InsertedTask, NewTask } from "../../../storage.ts";
import { RowBatch, rowStatement } from "../../connection/row-batch.ts";
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

const USUAL_COLUMNS = [
  ...["seq", "id", "tenant", "agent", "line", "priority", "rank", "position", "created_at", "deadline"],
  ...["max_retries_if_lost", "spec"],
];
/** What these columns have in usual tasks. */
const USUAL_CONSTANTS = { resting_state: "'queued'", origin: "'task'", last_node: `'${ROOM_FOR_END}'` };
/** Columns that are null or 0 in most tasks, as they are by default. Passing half of the values to SQLite costs half as much. */
const RARE_COLUMNS = [
  ...["run_at", "deadline_after_ms", "completed_at", "batch", "callback_url", "dependencies", "unmet"],
  ...[
    "preemptions_left",
    "session",
    "place",
    "in_session",
    "schedule",
    "concurrency_key",
    "error",
    "full_queue",
  ],
  ...["parent_task", "root_task"],
];
const ALL_COLUMNS = [...USUAL_COLUMNS, ...Object.keys(USUAL_CONSTANTS), ...RARE_COLUMNS];
const INSERT_TASK = `insert into task (${ALL_COLUMNS.join(", ")}) values (${ALL_COLUMNS.map(() => "?").join(", ")})`;
const INSERT_USUAL_TASKS = rowStatement(
  `(${[...USUAL_COLUMNS.map(() => "?"), ...Object.values(USUAL_CONSTANTS)].join(", ")})`,
  (rows) =>
    `insert into task (${[...USUAL_COLUMNS, ...Object.keys(USUAL_CONSTANTS)].join(", ")}) values ${rows}`,
);
/**
 * `or fail`: SQLite would otherwise copy each page that the statement changes, to undo only the statement if a row failed. A failed
 * row undoes the whole transaction. Rows of ready tasks lie on many pages.
 */
const INSERT_READY_TASKS = rowStatement(
  "(?, ?, ?)",
  (rows) => `insert or fail into ready (line, rank, task_seq) values ${rows}`,
);

/** Rows of usual tasks, which are ready at once. */
export class UsualRows {
  readonly #tasks: RowBatch;
  readonly #ready: RowBatch;

  constructor(tx: Transaction) {
    this.#tasks = new RowBatch(tx, INSERT_USUAL_TASKS);
    this.#ready = new RowBatch(tx, INSERT_READY_TASKS);
  }

  add(values: unknown[], { line, rank, seq }: { line: number; rank: number; seq: number }): void {
    this.#tasks.add(values);
    this.#ready.add([line, rank, seq]);
  }

  /** To be called before any row of the call is read. */
  write(): void {
    this.#tasks.write();
    this.#ready.write();
  }
}

/** `rows`: where the row of a usual task is written later; left out: it is written at once. */
export function insertTask(
  tx: Transaction,
  task: NewTask,
  admission: Admission,
  rows?: UsualRows,
): InsertedTask {
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
  if (task.dependsOn.length > 0) rows?.write();
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
  const usual = [
    answer.seq,
    task.id,
    task.tenant,
    task.agent,
    agentQueue.id,
    task.priority,
    rank,
    answer.position,
    now,
    answer.deadline,
    task.maxRetriesIfLost,
    jsonText(task.spec),
  ];
  const rare = [
    task.runAt,
    task.deadline === null ? task.deadlineAfterMs : null,
    rejection === null ? null : now,
    task.batch,
    task.callbackUrl,
    task.dependsOn.length,
    unmet,
    task.preemptible ? PREEMPTIONS_MAX : 0,
    session?.id ?? null,
    session?.last_place ?? null,
    inSession,
    task.schedule,
    task.concurrencyKey,
    error,
    rejection?.full ?? null,
    task.spec.within?.taskId ?? null,
    task.spec.within?.rootTaskId ?? null,
  ];
  const isUsual = task.origin === "task" && rare.every((value) => value === null || value === 0);
  // A later task of the call may be found by the key of this one.
  const isLater = isUsual && task.idempotency === null && rows !== undefined;
  if (isLater) {
    rows.add(usual, { line: agentQueue.id, rank, seq: answer.seq });
  } else {
    rows?.write();
    const room = rejection === null ? ROOM_FOR_END : null;
    if (isUsual) tx.prepare(INSERT_USUAL_TASKS.one).run(...usual);
    else tx.prepare(INSERT_TASK).run(...usual, answer.state, task.origin, room, ...rare);
  }
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
  if (isLater) ledger.countReady(agentQueue, { rank, task_seq: answer.seq });
  else if (answer.state === "queued")
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
