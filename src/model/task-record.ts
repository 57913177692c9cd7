import type { Redactor } from "./redactor.ts";
import type { Attempt, AttemptOutcome, Task, TaskRow, TaskSpec, TaskUsage, TaskWork } from "./task.ts";
import type { TaskState } from "./task-state.ts";
import { rfc3339 } from "./text/rfc3339.ts";

/** One execution as the storage keeps it. Times are milliseconds since 1970. */
export interface AttemptRecord {
  readonly number: number;
  readonly startedAt: number;
  readonly endedAt: number | null;
  readonly outcome: AttemptOutcome | null;
  readonly error: string | null;
  readonly node: string;
}

/** A task as the storage keeps it. Times are milliseconds since 1970; null means it has not happened or is not set. */
export interface TaskRecord {
  /** The order of acceptance, and the internal key of the task. */
  readonly seq: number;
  readonly id: string;
  readonly tenant: string;
  readonly agent: string;
  readonly lane: string;
  readonly priority: number;
  readonly state: TaskState;
  readonly position: number;
  readonly createdAt: number;
  readonly runAt: number | null;
  readonly deadline: number | null;
  readonly retryCount: number;
  readonly batch: string | null;
  /** The key of its session. */
  readonly session: string | null;
  /** The schedule that created it. */
  readonly schedule: number | null;
  /** Tasks of a tenant with the same key run one at a time; null: it has none. */
  readonly concurrencyKey: string | null;
  readonly callbackUrl: string | null;
  readonly startedAt: number | null;
  readonly completedAt: number | null;
  readonly spec: TaskSpec;
  /** Undefined until done. */
  readonly result: unknown;
  readonly error: string | null;
  /** Null: no attempt reported any. */
  readonly usage: TaskUsage | null;
  /** All attempts in order, the one in progress last. */
  readonly attempts: readonly AttemptRecord[];
}

/** The fields of a task in a table row. Null: it has not happened, or was not reported. */
export interface TaskRowRecord {
  readonly seq: number;
  readonly id: string;
  /** The start of its work as text; null: its spec takes more than `TITLED_BYTES_MAX`. */
  readonly title: string | null;
  readonly agent: string;
  readonly lane: string;
  readonly priority: number;
  readonly state: TaskState;
  readonly createdAt: number;
  readonly startedAt: number | null;
  readonly completedAt: number | null;
  /** The number of attempts, including the one in progress. */
  readonly attempts: number;
  /** Input and output tokens of all attempts that reported them. */
  readonly tokens: number | null;
  /** Cut short. */
  readonly error: string | null;
}

export function toTaskRow(record: TaskRowRecord, redactor: Redactor): TaskRow {
  return {
    taskId: record.id,
    ...(record.title === null ? {} : { title: redactor.text(record.title) }),
    state: record.state,
    agentId: record.agent,
    lane: record.lane,
    priority: record.priority,
    createdAt: rfc3339(record.createdAt),
    ...(record.startedAt === null ? {} : { startedAt: rfc3339(record.startedAt) }),
    ...(record.completedAt === null ? {} : { completedAt: rfc3339(record.completedAt) }),
    attempts: record.attempts,
    ...(record.tokens === null ? {} : { tokens: record.tokens }),
    ...(record.error === null ? {} : { error: redactor.text(record.error) }),
  };
}

/** The public view of a record, with secrets masked. */
export function toTask(record: TaskRecord, redactor: Redactor): Task {
  return toExecutorTask(redacted(record, redactor));
}

/** Costs nothing where there is nothing to mask. */
function redacted(record: TaskRecord, redactor: Redactor): TaskRecord {
  const { spec, result, error, attempts } = record;
  const { work, metadata } = spec;
  if (redactor.isEmpty && (work.kind !== "instruction" || work.llmConfig === undefined)) return record;
  return {
    ...record,
    spec: {
      ...spec,
      work: redactedWork(work, redactor),
      ...(metadata === undefined ? {} : { metadata: redactor.json(metadata) }),
    },
    result: redactor.json(result),
    error: error === null ? null : redactor.text(error),
    attempts: attempts.map((attempt) =>
      attempt.error === null ? attempt : { ...attempt, error: redactor.text(attempt.error) },
    ),
  };
}

function redactedWork(work: TaskWork, redactor: Redactor): TaskWork {
  switch (work.kind) {
    case "action":
      return work.params === undefined ? work : { ...work, params: redactor.json(work.params) };
    case "instruction":
      return work.llmConfig === undefined ? work : { ...work, llmConfig: redactor.llmConfig(work.llmConfig) };
    case "message":
      return work;
    case "custom":
      return { ...work, payload: redactor.json(work.payload) };
  }
}

/** The task as its executor gets it: unmasked. */
export function toExecutorTask(record: TaskRecord): Task {
  const { work, metadata, conversationId, requestId, retryPolicy, timeoutMs } = record.spec;
  const { key, dependsOn, preemptible, createdBy, within } = record.spec;
  const last = record.attempts.at(-1);
  return {
    taskId: record.id,
    agentId: record.agent,
    kind: work.kind,
    lane: record.lane,
    priority: record.priority,
    state: record.state,
    position: record.position,
    createdAt: rfc3339(record.createdAt),
    ...withoutKind(work),
    ...(metadata === undefined ? {} : { metadata }),
    ...(createdBy === undefined ? {} : { createdBy }),
    ...(within === undefined
      ? {}
      : { parentTaskId: within.taskId, rootTaskId: within.rootTaskId, depth: within.depth + 1 }),
    ...(record.batch === null ? {} : { batchId: record.batch }),
    ...(record.session === null ? {} : { sessionKey: record.session }),
    ...(record.schedule === null ? {} : { scheduleId: record.schedule }),
    ...(conversationId === undefined ? {} : { conversationId }),
    ...(requestId === undefined ? {} : { requestId }),
    ...(key === undefined ? {} : { key }),
    ...(dependsOn === undefined ? {} : { dependsOn }),
    ...(record.callbackUrl === null ? {} : { callbackUrl: record.callbackUrl }),
    ...(preemptible === undefined ? {} : { preemptible }),
    ...(record.concurrencyKey === null ? {} : { concurrencyKey: record.concurrencyKey }),
    ...(record.runAt === null ? {} : { runAt: rfc3339(record.runAt) }),
    ...(record.deadline === null ? {} : { deadline: rfc3339(record.deadline) }),
    ...(timeoutMs === null ? {} : { timeout: timeoutMs }),
    retryPolicy,
    retryCount: record.retryCount,
    ...(record.startedAt === null ? {} : { startedAt: rfc3339(record.startedAt) }),
    ...(record.completedAt === null ? {} : { completedAt: rfc3339(record.completedAt) }),
    ...(record.startedAt === null || record.completedAt === null
      ? {}
      : { latencyMs: between(record.startedAt, record.completedAt) }),
    ...(last === undefined || last.endedAt === null
      ? {}
      : { executionTimeMs: between(last.startedAt, last.endedAt) }),
    ...(record.result === undefined ? {} : { result: record.result }),
    ...(record.error === null ? {} : { error: record.error }),
    ...(record.usage === null ? {} : { usage: record.usage }),
    attempts: record.attempts.map(toAttempt),
  };
}

/** At least 0: the wall clock may have been set back between the two times. */
function between(startedAt: number, endedAt: number): number {
  return Math.max(endedAt - startedAt, 0);
}

function toAttempt(attempt: AttemptRecord): Attempt {
  return {
    number: attempt.number,
    startedAt: rfc3339(attempt.startedAt),
    endedAt: attempt.endedAt === null ? null : rfc3339(attempt.endedAt),
    outcome: attempt.outcome,
    error: attempt.error,
    node: attempt.node,
  };
}

function withoutKind<T extends { kind: unknown }>({ kind: _kind, ...rest }: T): Omit<T, "kind"> {
  return rest;
}
