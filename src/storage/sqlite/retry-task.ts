import type { AttemptOutcome } from "../../model/task.ts";
import type { TaskState } from "../../model/task-state.ts";
import type { RetriedTask, TaskOrigin } from "../storage.ts";
import type { SqliteDatabase } from "./database.ts";
import { reopenRun } from "./end-run.ts";
import { enterQueue } from "./enter-queue.ts";
import { Ledger } from "./ledger.ts";
import { preemptTasks } from "./preempt-tasks.ts";
import { RANK } from "./rank.ts";
import { settleMoves } from "./settle-moves.ts";

interface EndedTask {
  readonly seq: number;
  readonly line: number;
  readonly batch: string | null;
  readonly session: number | null;
  readonly concurrency_key: string | null;
  readonly origin: TaskOrigin;
  readonly resting_state: TaskState;
  readonly created_at: number;
  readonly run_at: number | null;
  readonly deadline: number | null;
  readonly deadline_after_ms: number | null;
  readonly executions: number;
  readonly unmet: number;
  readonly last_started_at: number | null;
  readonly last_outcome: AttemptOutcome | null;
  readonly error: string | null;
}

/** Puts a failed or cancelled task back into the queue. */
export async function retryTask(
  db: SqliteDatabase,
  params: { tenant: string; id: string },
): Promise<RetriedTask> {
  const retried = db.write((now): RetriedTask => {
    const task = db
      .prepare<EndedTask>(
        `select t.seq, t.line, t.batch, t.session, t.concurrency_key, t.origin, coalesce(l.state, t.resting_state) as resting_state, t.created_at, t.run_at,
                t.deadline, t.deadline_after_ms, t.executions,
                t.dependencies - (select count(*) from dependency d join task p on p.seq = d.parent_seq
                                   where d.child_seq = t.seq and p.resting_state = 'done') as unmet,
                t.last_started_at, t.last_outcome, t.error
           from task t left join lease l on l.task_seq = t.seq where t.tenant = ? and t.id = ?`,
      )
      .get(params.tenant, params.id);
    if (task === undefined) return { found: false };
    if (task.resting_state !== "failed" && task.resting_state !== "cancelled") {
      return { found: true, was: task.resting_state };
    }
    if (task.deadline_after_ms === null && task.deadline !== null && task.deadline <= now) {
      return { found: true, was: "overdue" };
    }
    return requeue(db, params, task, now);
  });
  await db.durable();
  return retried;
}

/** Accepted anew: whatever was stopped before does not count. */
function acceptInSession(ledger: Ledger, id: number | null): number | null {
  if (id === null) return null;
  const session = ledger.sessions.get(id);
  session.last_place += 1;
  return session.last_place;
}

function requeue(
  db: SqliteDatabase,
  { tenant, id }: { tenant: string; id: string },
  task: EndedTask,
  now: number,
): RetriedTask {
  const ledger = new Ledger(db);
  const line = ledger.line(task.line);
  ledger.countWaiting(line, task, 1);
  const waits = task.unmet > 0;
  // What was asked for holds; the wait of an earlier retry does not.
  const startsAt = !waits && task.executions === 0 ? Math.max(now, task.run_at ?? now) : now;
  const state = waits ? "waiting_dependency" : startsAt > now ? "delayed" : "queued";
  ledger.count(tenant, task.resting_state, -1);
  ledger.count(tenant, state, 1);
  const position = state !== "queued" ? 0 : ledger.waitingOfAgent(line.tenant, line.agent);
  const deadline =
    task.deadline_after_ms === null ? task.deadline : waits ? null : startsAt + task.deadline_after_ms;
  if (task.last_started_at !== null) {
    // The attempt that had ended the task becomes an earlier one.
    db.prepare(
      `insert into attempt (task_seq, number, started_at, ended_at, outcome, error, node)
       select seq, executions, last_started_at, completed_at, last_outcome, error, last_node from task where seq = ?`,
    ).run(task.seq);
  }
  const place = acceptInSession(ledger, task.session);
  const { rank } = db
    .prepare<{ rank: number }>(
      `update task set resting_state = @state, unmet = @unmet, position = @position, deadline = @deadline,
                       rank = ${RANK}, place = @place, retry_count = 0, completed_at = null, last_started_at = null, last_outcome = null,
                       last_node = null, error = null
        where seq = @seq returning rank`,
    )
    .get({
      state,
      unmet: task.unmet,
      position,
      deadline,
      agingMs: ledger.lane(line.lane).aging_ms,
      place,
      seq: task.seq,
    }) as { rank: number };
  const batch = ledger.batches.of(task);
  if (batch !== undefined) batch.open += 1;
  if (state === "queued") enterQueue(db, ledger, { ...task, rank, place, in_session: 0 }, now);
  const error = task.error === null ? {} : { error: task.error };
  ledger.events.add({
    type: "task.retrying",
    at: now,
    tenant,
    taskSeq: task.seq,
    data: { attempt: task.executions, ...error, retryAt: startsAt, state },
  });
  if (task.origin === "run") reopenRun(db, id, now);
  settleMoves(db, ledger, now);
  preemptTasks(db, ledger, now);
  ledger.save();
  db.signal({ kind: "events" });
  db.signal({ kind: "work" });
  if (deadline !== null || state === "delayed") db.signal({ kind: "due" });
  const { seq, created_at: createdAt, run_at: runAt } = task;
  const inserted = {
    seq,
    id,
    state,
    position,
    createdAt,
    runAt,
    deadline,
    rejection: null,
    repeats: null,
  } as const;
  return { found: true, was: null, task: inserted };
}
