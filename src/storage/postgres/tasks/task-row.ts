import type { AttemptOutcome, TaskUsage } from "../../../model/task.ts";
import type { AttemptRecord, TaskRecord } from "../../../model/task-record.ts";
import type { HeldState, TaskState } from "../../../model/task-state.ts";
import type { PostgresDatabase } from "../connection/database.ts";

/** A row of `task` with the columns of its lease and its agent queue. The driver returns 64-bit numbers as text. */
export interface TaskRow {
  readonly seq: string;
  readonly id: string;
  readonly tenant: string;
  readonly agent: string;
  readonly lane: string;
  readonly priority: number;
  readonly resting_state: Exclude<TaskState, HeldState>;
  readonly position: number;
  readonly created_at: string;
  readonly run_at: string | null;
  readonly deadline: string | null;
  readonly retry_count: number;
  readonly batch: string | null;
  readonly session: string | null;
  readonly schedule: string | null;
  readonly concurrency_key: string | null;
  readonly callback_url: string | null;
  readonly executions: number;
  readonly started_at: string | null;
  readonly last_started_at: string | null;
  readonly last_outcome: AttemptOutcome | null;
  readonly last_node: string | null;
  readonly completed_at: string | null;
  readonly spec: string;
  readonly result: string | null;
  readonly error: string | null;
  /** Null until an attempt has reported its usage, as are the next two. */
  readonly input_tokens: string | null;
  readonly output_tokens: string | null;
  readonly context_window: string | null;
  /** Null if no attempt holds the task, as are the next three. */
  readonly held_state: HeldState | null;
  readonly held_attempt: number | null;
  readonly held_node: string | null;
  readonly held_since: string | null;
}

/** The name of the session of a row `t` of `task`. */
export const SESSION_KEY =
  "case when t.session is not null then (select s.key from session s where s.id = t.session) end";

export const TASK_COLUMNS = `t.seq, t.id, t.tenant, t.agent, n.lane, t.priority, t.resting_state, t.position,
  t.created_at, t.run_at, t.deadline, t.retry_count, t.batch, ${SESSION_KEY} as session, t.schedule, t.concurrency_key, t.callback_url, t.executions,
  t.started_at, t.last_started_at, t.last_outcome, t.last_node, t.completed_at, t.spec, t.result, t.error, t.input_tokens,
  t.output_tokens, t.context_window,
  l.state as held_state, l.attempt as held_attempt, l.node as held_node, l.started_at as held_since`;

export const TASK_TABLES = "task t join line n on n.id = t.line left join lease l on l.task_seq = t.seq";

export async function toTaskRecords(db: PostgresDatabase, rows: readonly TaskRow[]): Promise<TaskRecord[]> {
  const earlier = await earlierAttempts(db, rows.filter(hasEarlierAttempts));
  // An attempt that has ended since the row was read is still in progress in the row.
  const upTo = ({ seq, executions }: TaskRow) =>
    (earlier.get(Number(seq)) ?? []).filter(({ number }) => number <= executions);
  return rows.map((row) => toTaskRecord(row, upTo(row)));
}

function toTaskRecord(row: TaskRow, earlier: readonly AttemptRecord[]): TaskRecord {
  return {
    seq: Number(row.seq),
    id: row.id,
    tenant: row.tenant,
    agent: row.agent,
    lane: row.lane,
    priority: row.priority,
    state: row.held_state ?? row.resting_state,
    position: row.position,
    createdAt: Number(row.created_at),
    runAt: toNumber(row.run_at),
    deadline: toNumber(row.deadline),
    retryCount: row.retry_count,
    batch: row.batch,
    session: row.session,
    schedule: toNumber(row.schedule),
    concurrencyKey: row.concurrency_key,
    callbackUrl: row.callback_url,
    startedAt: toNumber(row.started_at ?? (row.held_state === "assigned" ? null : row.held_since)),
    completedAt: toNumber(row.completed_at),
    spec: JSON.parse(row.spec),
    result: row.result === null ? undefined : JSON.parse(row.result),
    error: row.error,
    usage: toUsage(row),
    attempts: [...earlier, ...endingAttempt(row), ...heldAttempt(row)],
  };
}

function toUsage({ input_tokens, output_tokens, context_window }: TaskRow): TaskUsage | null {
  if (input_tokens === null) return null;
  return {
    inputTokens: Number(input_tokens),
    outputTokens: Number(output_tokens),
    ...(context_window === null ? {} : { contextWindow: Number(context_window) }),
  };
}

/** The attempt that ended the task is stored on the task. */
function endingAttempt(row: TaskRow): AttemptRecord[] {
  if (row.last_started_at === null || row.last_node === null) return [];
  return [
    {
      number: row.executions,
      startedAt: Number(row.last_started_at),
      endedAt: toNumber(row.completed_at),
      outcome: row.last_outcome,
      error: row.error,
      node: row.last_node,
    },
  ];
}

/** The attempt in progress is stored on the lease. */
function heldAttempt(row: TaskRow): AttemptRecord[] {
  if (row.held_attempt === null || row.held_since === null || row.held_node === null) return [];
  const { held_attempt: number, held_node: node } = row;
  return [{ number, startedAt: Number(row.held_since), endedAt: null, outcome: null, error: null, node }];
}

function hasEarlierAttempts(row: TaskRow): boolean {
  return row.executions > (row.last_started_at === null ? 0 : 1);
}

async function earlierAttempts(
  db: PostgresDatabase,
  rows: readonly TaskRow[],
): Promise<Map<number, AttemptRecord[]>> {
  // By number: what an insert has claimed comes as JSON, where `seq` is no text.
  const attempts = new Map<number, AttemptRecord[]>();
  if (rows.length === 0) return attempts;
  const found = await db.read<{
    task_seq: string;
    number: number;
    started_at: string;
    ended_at: string;
    outcome: AttemptOutcome;
    error: string | null;
    node: string;
  }>({
    name: "earlier_attempts",
    text: `select task_seq, number, started_at, ended_at, outcome, error, node from attempt
            where task_seq = any ($1) order by task_seq, number`,
    values: [rows.map(({ seq }) => seq)],
  });
  for (const { task_seq, number, started_at, ended_at, outcome, error, node } of found) {
    const attempt = {
      number,
      startedAt: Number(started_at),
      endedAt: Number(ended_at),
      outcome,
      error,
      node,
    };
    const seq = Number(task_seq);
    attempts.set(seq, [...(attempts.get(seq) ?? []), attempt]);
  }
  return attempts;
}

function toNumber(value: string | null): number | null {
  return value === null ? null : Number(value);
}
