import type { AttemptOutcome, TaskUsage } from "../../../model/task.ts";
import type { AttemptRecord, TaskRecord } from "../../../model/task-record.ts";
import type { HeldState, TaskState } from "../../../model/task-state.ts";
import type { SqliteDatabase } from "../connection/database.ts";

/** A row of `task` with columns of its lease and its agent queue. */
export interface TaskRow {
  readonly seq: number;
  readonly id: string;
  readonly tenant: string;
  readonly agent: string;
  readonly lane: string;
  readonly priority: number;
  readonly resting_state: Exclude<TaskState, HeldState>;
  readonly position: number;
  readonly created_at: number;
  readonly run_at: number | null;
  readonly deadline: number | null;
  readonly retry_count: number;
  readonly batch: string | null;
  readonly session_key: string | null;
  readonly schedule: number | null;
  readonly concurrency_key: string | null;
  readonly callback_url: string | null;
  readonly executions: number;
  readonly started_at: number | null;
  readonly last_started_at: number | null;
  readonly last_outcome: AttemptOutcome | null;
  readonly last_node: string | null;
  readonly completed_at: number | null;
  readonly spec: string;
  readonly result: string | null;
  readonly error: string | null;
  readonly input_tokens: number | null;
  readonly output_tokens: number | null;
  readonly context_window: number | null;
  /** These four are null when no attempt holds the task. */
  readonly held_state: HeldState | null;
  readonly held_attempt: number | null;
  readonly held_node: string | null;
  readonly held_since: number | null;
}

export const TASK_COLUMNS = `t.seq, t.id, t.tenant, t.agent, n.lane, t.priority, t.resting_state, t.position,
  t.created_at, t.run_at, t.deadline, t.retry_count, t.batch, s.key as session_key, t.schedule, t.concurrency_key, t.callback_url, t.executions, t.started_at, t.last_started_at, t.last_outcome,
  t.last_node, t.completed_at, t.spec, t.result, t.error, t.input_tokens, t.output_tokens, t.context_window,
  l.state as held_state, l.attempt as held_attempt, l.node as held_node, l.started_at as held_since`;

/** `index`: an `indexed by` clause, if SQLite should not choose the index itself. */
export function taskTables(index = ""): string {
  return `task t ${index} join line n on n.id = t.line left join lease l on l.task_seq = t.seq
    left join session s on s.id = t.session`;
}

export function toTaskRecord(db: SqliteDatabase, row: TaskRow): TaskRecord {
  return {
    seq: row.seq,
    id: row.id,
    tenant: row.tenant,
    agent: row.agent,
    lane: row.lane,
    priority: row.priority,
    state: row.held_state ?? row.resting_state,
    position: row.position,
    createdAt: row.created_at,
    runAt: row.run_at,
    deadline: row.deadline,
    retryCount: row.retry_count,
    batch: row.batch,
    session: row.session_key,
    schedule: row.schedule,
    concurrencyKey: row.concurrency_key,
    callbackUrl: row.callback_url,
    startedAt: row.started_at ?? (row.held_state === "assigned" ? null : row.held_since),
    completedAt: row.completed_at,
    spec: JSON.parse(row.spec),
    result: row.result === null ? undefined : JSON.parse(row.result),
    error: row.error,
    usage: toUsage(row),
    attempts: attemptsOf(db, row),
  };
}

/** Earlier attempts have rows in `attempt`. The attempt that ended the task is stored in `task`, the running one in `lease`. */
function attemptsOf(db: SqliteDatabase, row: TaskRow): AttemptRecord[] {
  const endedTask = row.last_started_at !== null;
  const attempts = row.executions > (endedTask ? 1 : 0) ? earlierAttempts(db, row.seq) : [];
  if (row.last_started_at !== null && row.last_node !== null) {
    attempts.push({
      number: row.executions,
      startedAt: row.last_started_at,
      endedAt: row.completed_at,
      outcome: row.last_outcome,
      error: row.error,
      node: row.last_node,
    });
  }
  if (row.held_attempt !== null && row.held_since !== null && row.held_node !== null) {
    attempts.push({
      number: row.held_attempt,
      startedAt: row.held_since,
      endedAt: null,
      outcome: null,
      error: null,
      node: row.held_node,
    });
  }
  return attempts;
}

/** Attempts that ended without ending their task. */
export function earlierAttempts(db: SqliteDatabase, seq: number): AttemptRecord[] {
  return db
    .prepare<AttemptRecord>(
      `select number, started_at as startedAt, ended_at as endedAt, outcome, error, node
         from attempt where task_seq = ? order by number`,
    )
    .all(seq);
}

export type UsageColumns = Pick<TaskRow, "input_tokens" | "output_tokens" | "context_window">;

/** The usage that the attempts so far have reported, also one that was given back before it began. */
export function toUsage(row: UsageColumns): TaskUsage | null {
  const { input_tokens: inputTokens, output_tokens: outputTokens, context_window: contextWindow } = row;
  if (inputTokens === null || outputTokens === null) return null;
  return { inputTokens, outputTokens, ...(contextWindow === null ? {} : { contextWindow }) };
}
