import type { Delivery } from "../../src/model/delivery.ts";
import { type EventType, type RotaEvent, STATE_AFTER } from "../../src/model/event.ts";
import type { Attempt, AttemptOutcome, Task } from "../../src/model/task.ts";
import { isTerminal, type TaskState } from "../../src/model/task-state.ts";
import { DEFAULT_TENANT } from "../../src/model/tenant.ts";
import type { Call, Callback, History } from "./history.ts";

/** What to make a history of. */
export interface Story {
  /**
   * What happened, in order: "a created", "a started", "a completed". A word more is the state it went to, and what comes
   * after a colon is the error: "b created waiting_dependency", "b cancelled: dependency a failed". A task called "x/a" is of
   * the tenant x.
   */
  readonly log: readonly string[];
  /** Facts about tasks besides those that follow from the log. */
  readonly tasks?: Readonly<Record<string, Partial<Task>>>;
}

const OUTCOMES: Partial<Record<EventType, AttemptOutcome>> = {
  "task.completed": "done",
  "task.failed": "failed",
  "task.cancelled": "cancelled",
  "task.retrying": "failed",
  "task.preempted": "preempted",
};

/** A history without faults, if the story has none: a test adds the fault that it needs. */
export function madeHistory(story: Story, faults: Partial<History> = {}): History {
  const tasks = new Map<string, Task>();
  const events: RotaEvent[] = [];
  for (const line of story.log) {
    const [, id = "", word = "", state, error] = /^(\S+) (\S+)(?: (\w+))?(?:: (.*))?$/.exec(line) ?? [];
    const type = (word.includes(".") ? word : `task.${word}`) as EventType;
    const task = tasks.get(id) ?? newTask(id, story.tasks?.[id]);
    tasks.set(
      id,
      type === "batch.completed" ? task : moved(task, type, { state: state as TaskState, error }),
    );
    events.push(eventOf(tasks.get(id) ?? task, type, events.length + 1, error));
  }
  // Given facts replace those of the log, so that a test can give a wrong one.
  for (const [id, said] of Object.entries(story.tasks ?? {})) {
    const task = tasks.get(id);
    if (task !== undefined) tasks.set(id, { ...task, ...said });
  }
  return {
    limits: { lanes: {}, agents: {}, sessions: {} },
    acknowledged: [],
    retriesAsked: [],
    resendsAsked: [],
    calls: [],
    callbacks: [],
    deliveries: [],
    strikes: [],
    events,
    followed: [{ tenantId: DEFAULT_TENANT, seqs: events.map(({ seq }) => seq) }],
    tasks,
    schedules: [],
    edits: [],
    views: [],
    knocks: [],
    runs: [],
    doctor: { ok: true, checks: [] },
    ...faults,
  };
}

export function madeCall(call: Partial<Call> & Pick<Call, "taskId" | "began" | "ended">): Call {
  return { attempt: 1, node: "n", process: "node-0", answer: null, dependencies: [], ...call };
}

/** One that was taken at once. */
export function madeCallback(
  callback: Partial<Callback> & Pick<Callback, "deliveryId" | "taskId" | "url" | "body">,
): Callback {
  return { event: "task.completed", genuine: true, answered: 200, ...callback };
}

/** One that was delivered at once. */
export function madeDelivery(
  delivery: Partial<Delivery> & Pick<Delivery, "deliveryId" | "taskId" | "url">,
): Delivery {
  return {
    event: "task.completed",
    status: "delivered",
    tries: 1,
    createdAt: "2030-01-01T00:00:00.000Z",
    responseStatus: 200,
    ...delivery,
  };
}

function newTask(taskId: string, said: Partial<Task> = {}): Task {
  return {
    taskId,
    agentId: "worker",
    kind: "custom",
    lane: "tasks",
    priority: 2,
    state: "queued",
    position: 1,
    createdAt: "2030-01-01T00:00:00.000Z",
    retryPolicy: { maxRetries: 3, backoffMs: 1, backoffMultiplier: 1, maxBackoffMs: 1, jitter: 0 },
    retryCount: 0,
    ...said,
    attempts: [],
  };
}

function moved(
  task: Task,
  type: EventType,
  said: { state: TaskState | undefined; error: string | undefined },
): Task {
  const state = said.state ?? STATE_AFTER[type] ?? "queued";
  const last = task.attempts.at(-1);
  let { attempts } = task;
  if (type === "task.started") attempts = [...attempts, newAttempt(attempts.length + 1)];
  else if (last !== undefined && last.endedAt === null && OUTCOMES[type] !== undefined)
    attempts = [
      ...attempts.slice(0, -1),
      { ...last, endedAt: task.createdAt, outcome: OUTCOMES[type] ?? null },
    ];
  return {
    ...task,
    state,
    attempts,
    ...(state === "done" && task.result === undefined ? { result: `result of ${task.taskId}` } : {}),
    ...(isTerminal(state) && said.error !== undefined ? { error: said.error } : {}),
  };
}

function newAttempt(number: number): Attempt {
  return {
    number,
    startedAt: "2030-01-01T00:00:00.000Z",
    endedAt: null,
    outcome: null,
    error: null,
    node: "n",
  };
}

function eventOf(task: Task, type: EventType, seq: number, error: string | undefined): RotaEvent {
  const tenantId = task.taskId.includes("/") ? (task.taskId.split("/")[0] ?? "") : DEFAULT_TENANT;
  const { taskId, agentId, lane, batchId, sessionKey, scheduleId, state, attempts } = task;
  return {
    seq,
    type,
    tenantId,
    taskId,
    agentId,
    lane,
    state,
    timestamp: "2030-01-01T00:00:00.000Z",
    ...(batchId === undefined ? {} : { batchId }),
    ...(sessionKey === undefined ? {} : { sessionKey }),
    ...(scheduleId === undefined ? {} : { scheduleId }),
    ...(error === undefined ? {} : { error }),
    ...(type === "task.started" ? { attempt: attempts.length } : {}),
    ...(type === "task.completed" ? { result: task.result } : {}),
  };
}
