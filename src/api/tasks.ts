import { z } from "zod";
import { REASON_CODES } from "../model/explanation.ts";
import { TASK_FILTER, TASK_VIEW } from "../model/input/task-filter-input.ts";
import { TASK_LOG_FILTER } from "../model/input/task-log-filter.ts";
import { KIND_FIELDS, TASK } from "../model/input/task-schema.ts";
import { ATTEMPT_OUTCOMES, TASK_KINDS } from "../model/task.ts";
import { TASK_LOG_LEVELS } from "../model/task-log.ts";
import { TASK_STATES } from "../model/task-state.ts";
import { leftOfBounds } from "./bounds.ts";
import { errorAnswers } from "./error.ts";
import { optionalFields, querySchema, requestSchema } from "./input-schema.ts";
import { createdBy } from "./provenance.ts";
import { time } from "./time.ts";

const anyObject = z.record(z.string(), z.unknown());
export const TASK_EXAMPLE = {
  taskId: "tsk_019a8f6e",
  agentId: "index",
  kind: "custom",
  lane: "tasks",
  priority: 2,
  state: "done",
  position: 1,
  createdAt: "2026-03-08T12:00:01.000Z",
  payload: { n: 1 },
  timeout: 120_000,
  retryPolicy: { maxRetries: 0, backoffMs: 1_000, backoffMultiplier: 2, maxBackoffMs: 60_000, jitter: 0 },
  retryCount: 0,
  startedAt: "2026-03-08T12:00:01.003Z",
  completedAt: "2026-03-08T12:00:01.005Z",
  latencyMs: 2,
  executionTimeMs: 2,
  result: { n: 1 },
  attempts: [
    {
      number: 1,
      startedAt: "2026-03-08T12:00:01.003Z",
      endedAt: "2026-03-08T12:00:01.005Z",
      outcome: "done",
      error: null,
      node: "machine-4242-019a8f6d",
    },
  ],
};

const retryPolicy = z.strictObject({
  maxRetries: z.int(),
  backoffMs: z.number(),
  backoffMultiplier: z.number(),
  maxBackoffMs: z.number(),
  jitter: z.number(),
});

/** The work of a task. */
const { action, instruction, message, custom } = KIND_FIELDS;
const work = optionalFields({ ...action, ...instruction, ...message, ...custom });

const taskInput = requestSchema(TASK);

export const warnings = z
  .array(z.string())
  .readonly()
  .exactOptional()
  .describe("Warnings, for instance that no live node can execute the task. Left out if there are none.");

export const submittedTask = z
  .strictObject({
    taskId: z.string(),
    state: z.enum(TASK_STATES),
    position: z.int(),
    createdAt: time,
    warnings,
  })
  .meta({
    id: "SubmittedTask",
    description: "The task is stored and will run.",
    examples: [
      { taskId: "tsk_019a8f6e", state: "queued", position: 1, createdAt: "2026-03-08T12:00:01.000Z" },
    ],
  });

const attempt = z.strictObject({
  number: z.int(),
  startedAt: time,
  endedAt: time.nullable(),
  outcome: z.enum(ATTEMPT_OUTCOMES).nullable(),
  error: z.string().nullable(),
  node: z.string(),
});

export const task = z
  .strictObject({
    taskId: z.string(),
    agentId: z.string(),
    kind: z.enum(TASK_KINDS),
    lane: z.string(),
    priority: z.int(),
    state: z.enum(TASK_STATES),
    position: z
      .int()
      .describe("Its position among the agent's waiting tasks at submission; 0: it could not start yet."),
    createdAt: time,
    ...work,
    metadata: anyObject.exactOptional(),
    key: z.string().exactOptional().describe("Its name in `dependsOn` of tasks of the same request."),
    dependsOn: z
      .array(z.string())
      .readonly()
      .exactOptional()
      .describe("The tasks that must be done before it starts."),
    createdBy: createdBy
      .exactOptional()
      .describe("Who submitted it. Left out: an older version of Rota stored it."),
    parentTaskId: z.string().exactOptional().describe("The task in whose attempt it was submitted."),
    rootTaskId: z
      .string()
      .exactOptional()
      .describe("The first task of the tree that it is part of. Left out: it has no parent."),
    depth: z.int().exactOptional().describe("How many tasks are above it in that tree. Left out: none."),
    batchId: z.string().exactOptional().describe("The batch it was submitted with."),
    sessionKey: z.string().exactOptional().describe("The conversation it is part of."),
    scheduleId: z.int().exactOptional().describe("The schedule that it is a run of."),
    conversationId: z
      .string()
      .exactOptional()
      .describe("The conversation as the agent names it, if the schedule has one."),
    requestId: z
      .string()
      .exactOptional()
      .describe("The `request_id` of the run that it is; the agent is called with it."),
    callbackUrl: z.string().exactOptional().describe("The URL that is called when it has ended."),
    preemptible: z.boolean().exactOptional().describe("True: a `critical` task may pre-empt it."),
    concurrencyKey: z.string().exactOptional().describe("Tasks with the same key run one at a time."),
    runAt: time.exactOptional(),
    deadline: time.exactOptional(),
    timeout: z.int().exactOptional(),
    retryPolicy,
    retryCount: z.int(),
    startedAt: time.exactOptional().describe("The first execution."),
    completedAt: time.exactOptional(),
    latencyMs: z.number().exactOptional().describe("From the first start to the end."),
    executionTimeMs: z.number().exactOptional().describe("The last attempt alone."),
    result: z.unknown().optional(),
    error: z.string().exactOptional(),
    usage: z
      .strictObject({
        inputTokens: z.number(),
        outputTokens: z.number(),
        contextWindow: z
          .number()
          .exactOptional()
          .describe("The context window of the model used last, in tokens."),
      })
      .exactOptional()
      .describe("What it cost, over all attempts that reported it."),
    attempts: z.array(attempt).readonly(),
  })
  .meta({ id: "Task", description: "A task, with its attempts and its outcome.", examples: [TASK_EXAMPLE] });

const { taskId: _id, position: _position, attempts: _attempts, ...PLANNED_EXAMPLE } = TASK_EXAMPLE;

export const taskDryRun = z
  .strictObject({
    dryRun: z.literal(true),
    task: z
      .strictObject(task.omit({ taskId: true, position: true, attempts: true }).shape)
      .describe("The task that would be stored; `state` is the one in which it would begin."),
    left: leftOfBounds,
  })
  .meta({
    id: "TaskDryRun",
    description: "The request passed all checks that need no write. Nothing is stored.",
    examples: [{ dryRun: true, task: { ...PLANNED_EXAMPLE, state: "queued" } }],
  });

/** The query of a request that may be a dry run. */
export const dryRunQuery = z.strictObject({
  dryRun: z.string().exactOptional().describe("`true`: check the request, and store nothing."),
});

const taskId = z.strictObject({ id: z.string().describe("The `taskId`.") });

/** The query of one task. */
const oneTaskQuery = z.strictObject({
  wait: z
    .string()
    .exactOptional()
    .describe("Seconds, 1 to 60: respond once the task has ended, or after that time with the current task."),
});

const taskQuery = querySchema({ noun: "query", fields: { ...TASK_FILTER.fields, ...TASK_VIEW.fields } });

const TASK_ROW_EXAMPLE = {
  taskId: "tsk_019a8f6e",
  title: "Summarise the news",
  state: "done",
  agentId: "research",
  lane: "tasks",
  priority: 2,
  createdAt: "2026-03-08T12:00:01.000Z",
  startedAt: "2026-03-08T12:00:01.003Z",
  completedAt: "2026-03-08T12:00:09.120Z",
  attempts: 1,
  tokens: 3_100,
};

const taskRow = z
  .strictObject({
    taskId: z.string(),
    title: z
      .string()
      .exactOptional()
      .describe(
        "The input of the task on one line, cut after 160 characters; left out if the input is larger than 64 KiB.",
      ),
    state: z.enum(TASK_STATES),
    agentId: z.string(),
    lane: z.string(),
    priority: z.int(),
    createdAt: time,
    startedAt: time.exactOptional().describe("The first execution."),
    completedAt: time.exactOptional(),
    attempts: z.int().describe("The number of attempts, including the one in progress."),
    tokens: z
      .number()
      .exactOptional()
      .describe("Input and output tokens together, over all attempts that reported them."),
    error: z.string().exactOptional().describe("On one line, cut after 160 characters."),
  })
  .meta({
    id: "TaskRow",
    description: "A summary of a task for lists: never more than these twelve fields.",
    examples: [TASK_ROW_EXAMPLE],
  });

export const taskPage = z
  .strictObject({
    tasks: z.array(task).readonly().describe("In the order asked for."),
    count: z.int().describe("Of this page."),
    nextCursor: z.string().nullable().describe("Null on the last page."),
  })
  .meta({
    id: "TaskPage",
    description: "A page of the tasks that match.",
    examples: [{ tasks: [TASK_EXAMPLE], count: 1, nextCursor: null }],
  });

const taskRowPage = z
  .strictObject({
    tasks: z.array(taskRow).readonly().describe("In the order asked for."),
    count: z.int().describe("Of this page."),
    nextCursor: z.string().nullable().describe("Null on the last page."),
  })
  .meta({
    id: "TaskRowPage",
    description: "The same with `view=row`.",
    examples: [{ tasks: [TASK_ROW_EXAMPLE], count: 1, nextCursor: null }],
  });

const listedTasks = z.union([taskPage, taskRowPage]).meta({
  id: "ListedTasks",
  description: "A page of the tasks that match: whole, or with `view=row` a summary of each.",
  examples: [
    { tasks: [TASK_EXAMPLE], count: 1, nextCursor: null },
    { tasks: [TASK_ROW_EXAMPLE], count: 1, nextCursor: "41" },
  ],
});

export const cancelledTask = z
  .strictObject({
    status: z.literal("cancelled"),
    taskId: z.string(),
    cancelled: z
      .int()
      .exactOptional()
      .describe("With `tree`: how many tasks were cancelled, the task itself included."),
    more: z
      .literal(true)
      .exactOptional()
      .describe("With `tree`: there are so many tasks that some may be left. Call again."),
  })
  .meta({
    id: "CancelledTask",
    description: "The task has ended for good.",
    examples: [{ status: "cancelled", taskId: "tsk_019a8f6e" }],
  });

export const taskCounts = z
  .strictObject({
    counts: z.partialRecord(z.enum(TASK_STATES), z.int()).describe("States without any are left out."),
    total: z.int(),
  })
  .meta({
    id: "TaskCounts",
    description: "How many tasks are in each state.",
    examples: [{ counts: { queued: 5, running: 2, done: 35 }, total: 42 }],
  });

// ------------------------------------------------------------------------------------------------------ operations

const tags = ["tasks"];

export const submitTask = {
  operationId: "submitTask",
  tags,
  summary: "Submit a task",
  description:
    "202 means that the task is on disk and will run. An invalid request is refused, and nothing is stored. With `dryRun=true` the response is the task that would be stored; this checks the bounds of the caller, but not the room in the queue, the quotas of the tenant and earlier uses of the idempotency key.",
  querystring: dryRunQuery,
  body: taskInput,
  response: {
    200: taskDryRun,
    202: submittedTask,
    ...errorAnswers(
      "unknown_key",
      "idempotency_conflict",
      "queue_full",
      "quota_exceeded",
      "draining",
      "scheduler_disabled",
      "storage_unavailable",
    ),
  },
};

export const listTasks = {
  operationId: "listTasks",
  tags,
  summary: "List tasks",
  description:
    "Newest first unless `order` says otherwise. A page has `limit` tasks or fewer: it ends after about 4 MiB, and each request reads a bounded number of tasks. A page can even be empty. There may be more as long as `nextCursor` is not null.",
  querystring: taskQuery,
  response: { 200: listedTasks, ...errorAnswers("storage_unavailable") },
};

export const getTaskCounts = {
  operationId: "getTaskCounts",
  tags,
  summary: "Count tasks by state",
  description: "How many tasks are in each state.",
  response: { 200: taskCounts, ...errorAnswers("storage_unavailable") },
};

export const getTask = {
  operationId: "getTask",
  tags,
  summary: "Get a task",
  description: "The whole task. With `wait` the response comes as soon as the task has ended.",
  params: taskId,
  querystring: oneTaskQuery,
  response: { 200: task, ...errorAnswers("not_found", "rate_limited", "storage_unavailable") },
};

const explanation = z
  .strictObject({
    taskId: z.string(),
    state: z.enum(TASK_STATES),
    since: time.describe("Since when it has been in this state."),
    position: z
      .int()
      .describe(
        "Its position among the ready tasks of its agent, or among the tasks that wait for its concurrency key; 0: it is not among them.",
      ),
    ahead: z.array(z.string()).readonly().describe("The tasks that start before it, in order, at most ten."),
    reasons: z
      .array(
        z.strictObject({
          code: z.enum(REASON_CODES),
          message: z.string().describe("A sentence for people."),
          since: time,
          taskId: z.string().exactOptional().describe("The task that it waits for."),
          lane: z.string().exactOptional(),
          until: time.exactOptional().describe("When this reason ends."),
        }),
      )
      .readonly()
      .describe("Everything that holds the task; empty if it has ended."),
  })
  .meta({
    id: "Explanation",
    description: "Why a task waits.",
    examples: [
      {
        taskId: "tsk_019a8f70",
        state: "queued",
        since: "2026-03-08T12:00:01.000Z",
        position: 2,
        ahead: ["tsk_019a8f6e"],
        reasons: [
          {
            code: "lane_full",
            message: 'all 20 slots of the lane "tasks" over all nodes are taken',
            since: "2026-03-08T12:00:01.000Z",
            lane: "tasks",
          },
        ],
      },
    ],
  });

export const explainTask = {
  operationId: "explainTask",
  tags,
  summary: "Explain why a task waits",
  description: "Everything that holds the task, since when, and the tasks that start before it.",
  params: taskId,
  response: { 200: explanation, ...errorAnswers("not_found", "storage_unavailable") },
};

const LOG_EXAMPLE = { n: 1, at: "2026-03-08T12:00:01.005Z", level: "info" as const, text: "read 12 pages" };

const taskLog = z
  .strictObject({
    taskId: z.string(),
    attempt: z
      .int()
      .nullable()
      .describe("The attempt that logged the lines; null: the task has no log lines."),
    lines: z
      .array(
        z.strictObject({
          n: z
            .int()
            .describe("The number of the line within its attempt, from 1. Missing numbers were dropped."),
          at: time,
          level: z.enum(TASK_LOG_LEVELS),
          text: z.string().describe("The message, then its fields as JSON; up to 4 KiB."),
        }),
      )
      .readonly()
      .describe("Oldest first."),
    count: z.int().describe("Of this page."),
    dropped: z.int().describe("How many older lines of this attempt are no longer stored."),
    next: z.int().nullable().describe("Send it as `after` for the next lines; null: there are no more now."),
  })
  .meta({
    id: "TaskLog",
    description: "The log lines of an attempt.",
    examples: [
      { taskId: "tsk_019a8f6e", attempt: 1, lines: [LOG_EXAMPLE], count: 1, dropped: 0, next: null },
    ],
  });

export const getTaskLog = {
  operationId: "getTaskLog",
  tags,
  summary: "Read the log lines of a task",
  description:
    "Lines that the executor logged, and that a program wrote to stderr, oldest first. Rota stores the last 2000 lines (up to 256 KiB) of each of the last 5 attempts, as long as the task. Lines appear within half a second.",
  params: taskId,
  querystring: querySchema(TASK_LOG_FILTER),
  response: { 200: taskLog, ...errorAnswers("not_found", "storage_unavailable") },
};

export const cancelTask = {
  operationId: "cancelTask",
  tags,
  summary: "Cancel a task",
  description:
    "A waiting task never starts; a running one is aborted, on whichever node it runs. A task that has ended stays as it is: 409, and `details.state` says how it ended.",
  params: taskId,
  querystring: z.strictObject({
    tree: z
      .string()
      .exactOptional()
      .describe(
        "`true`: also cancel all tasks that were submitted within it, and within those. The task itself may then have ended already.",
      ),
  }),
  response: { 200: cancelledTask, ...errorAnswers("not_found", "conflict", "storage_unavailable") },
};

export const deleteTask = {
  ...cancelTask,
  operationId: "deleteTask",
  summary: "Cancel a task, by DELETE",
  description: "The same as `POST …/cancel`: the task stays, and is cancelled.",
};

export const retryTask = {
  operationId: "retryTask",
  tags,
  summary: "Run a failed or cancelled task again",
  description:
    "The task returns to the queue with all its retries; its earlier attempts stay listed. If a dependency ended without being done, or is no longer stored, the response is a 409 that names the dependency.",
  params: taskId,
  querystring: z.strictObject({
    dependants: z
      .string()
      .exactOptional()
      .describe(
        "`true`: also requeue the tasks that were cancelled because of this one, transitively; they wait for it again.",
      ),
  }),
  response: {
    202: submittedTask,
    ...errorAnswers("not_found", "conflict", "draining", "scheduler_disabled", "storage_unavailable"),
  },
};

const taskAgain = taskInput.nullish().meta({
  id: "TaskAgain",
  description: "The whole new task; left out: a copy of the stored one.",
  examples: [{ agentId: "research", instruction: "And now?", llmConfig: { model: "small", apiKey: "…" } }],
});

export const submitTaskAgain = {
  operationId: "submitTaskAgain",
  tags,
  summary: "Submit a task again",
  description:
    "Creates a new task: a copy of this one, or the task in the body. Free-form fields of the body may contain the masks that `GET` shows: such a field is copied from the stored task if the rest of the field and `agentId` are unchanged, and for `params` also `action`, `tabId`, `ref` and `selector`; otherwise write the value. Dependencies are not copied.",
  params: taskId,
  body: taskAgain,
  response: {
    202: submittedTask,
    ...errorAnswers(
      "not_found",
      "idempotency_conflict",
      "queue_full",
      "quota_exceeded",
      "draining",
      "scheduler_disabled",
      "storage_unavailable",
    ),
  },
};
