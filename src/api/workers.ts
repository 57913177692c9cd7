import { z } from "zod";
import {
  ATTEMPT_FINISH,
  ATTEMPT_HEARTBEAT,
  CLAIM,
  FINISH,
  HEARTBEAT,
  WORKER,
  WORKER_PAGE,
} from "../model/input/worker-schema.ts";
import { ATTEMPT_REASONS, WORKER_STATES } from "../model/worker.ts";
import { errorAnswersWith } from "./error.ts";
import { optionalRequestSchema, querySchema, requestSchema } from "./input-schema.ts";
import { task } from "./tasks.ts";
import { time } from "./time.ts";

const TOKEN = "att_T2v0rY1cWQ5xkH8mJ3pLw9sNfB6dGzE4uAiOqXyCtKM";
const WORKER_ID = "wrk_019a8f6e7c1d7b3e9f2a4c5d6e7f8091";
const SIGNALS_EXAMPLE = `retry: 1000
event: open
data: {"ok":true}

event: cancel
data: {"taskId":"tsk_019a8f6e","number":1,"cancel":"cancelled"}

event: drain
data: {}

`;

const workerInfo = z
  .strictObject({
    id: z.string(),
    name: z.string(),
    agents: z.array(z.string()).readonly().describe('`["*"]`: all that workers may run.'),
    slots: z.int().describe("How many tasks it runs at once."),
    running: z.int().describe("Attempts that it holds."),
    state: z
      .enum(WORKER_STATES)
      .describe(
        "`idle`: it waits for tasks. `busy`: it holds tasks. `draining`: it was asked to finish and end. `not_polling`: it gives signs of life, but has not asked for tasks for 30 s although it has free slots. `lost`: no sign of life for a whole lease; its tasks went back to the queue.",
      ),
    lastSeenAt: time.describe("When it last gave a sign of life."),
    version: z.string().nullable(),
    runtime: z.string().nullable(),
    labels: z.record(z.string(), z.string()).readonly(),
    doneLast10m: z.int().describe("Attempts that ended with a result in the last ten minutes."),
    failedLast10m: z.int(),
  })
  .meta({
    id: "Worker",
    description: "A process elsewhere that pulls tasks.",
    examples: [
      {
        id: WORKER_ID,
        name: "py-1",
        agents: ["py"],
        slots: 4,
        running: 1,
        state: "busy" as const,
        lastSeenAt: "2026-03-08T12:34:56.789Z",
        version: "1.2.0",
        runtime: "python 3.12",
        labels: {},
        doneLast10m: 12,
        failedLast10m: 0,
      },
    ],
  });

const workerList = z
  .strictObject({
    workers: z.array(workerInfo).readonly(),
    count: z.int().describe("Of this page."),
    nextCursor: z.string().nullable().describe("Null on the last page."),
  })
  .meta({
    id: "WorkerList",
    description: "The workers of the tenant, ordered by name.",
    examples: [{ workers: [], count: 0, nextCursor: null }],
  });

const registered = z
  .strictObject({
    workerId: z.string(),
    leaseMs: z.int().describe("Its tasks go to other workers after this long without a sign of life."),
    heartbeatMs: z.int().describe("How often to send a heartbeat while it holds tasks."),
    maxWaitS: z.int().describe("The longest `waitS` of a claim."),
    finishesPerClaim: z.int().describe("How many `finishes` a claim may carry."),
    now: time,
  })
  .meta({
    id: "RegisteredWorker",
    description: "The worker, from now on known by its id.",
    examples: [
      {
        workerId: WORKER_ID,
        leaseMs: 15_000,
        heartbeatMs: 5_000,
        maxWaitS: 25,
        finishesPerClaim: 100,
        now: "2026-03-08T12:00:00.000Z",
      },
    ],
  });

const reason = z.enum(ATTEMPT_REASONS);

const finished = z
  .strictObject({
    attemptToken: z.string(),
    recorded: z.boolean().describe("Whether the end is stored."),
    repeated: z.literal(true).exactOptional().describe("It was stored by an earlier request."),
    reason: reason.exactOptional().describe("Why it is not stored."),
  })
  .meta({
    id: "FinishedAttempt",
    description: "Whether the end of an attempt is stored.",
    examples: [{ attemptToken: TOKEN, recorded: true }],
  });

const claimedTask = task
  .extend({
    dependencies: z
      .array(
        z.union([
          z.strictObject({ taskId: z.string(), result: z.unknown() }),
          z.strictObject({ taskId: z.string(), resultBytes: z.int(), omitted: z.literal(true) }),
        ]),
      )
      .readonly()
      .exactOptional()
      .describe(
        "The results of the tasks in `dependsOn`. With `omitted`: it is large, so read it with `GET /v1/attempts/{token}/dependencies/{taskId}`.",
      ),
  })
  .meta({
    id: "ClaimedTask",
    description: "A task as executors get it, with the results of its dependencies.",
  });

export const claimAnswer = z
  .strictObject({
    attempts: z
      .array(
        z.strictObject({
          attemptToken: z.string().describe("Names the attempt in heartbeats and finishes. Keep it secret."),
          taskToken: z
            .string()
            .describe(
              "Lets the handler call Rota as its agent within this task, until the attempt has ended: send it as the header `X-Rota-Task-Token`. Keep it secret.",
            ),
          number: z.int().describe("1 for the first attempt of the task."),
          leaseMs: z.int(),
          timeoutMs: z.int().nullable().describe("What is left of its timeout; null: it has none."),
          deadlineInMs: z.int().exactOptional().describe("What is left until the deadline of the task."),
          tenantId: z.string(),
          contextWindow: z.int().exactOptional().describe("Of the agent's model, if the agent names one."),
          task: claimedTask,
        }),
      )
      .readonly(),
    drain: z
      .literal(true)
      .exactOptional()
      .describe(
        "Finish what runs, then end. With `retryInMs`: only this node stops, so claim again after that time.",
      ),
    retryInMs: z
      .int()
      .exactOptional()
      .describe(
        "Claim again after this many milliseconds: the node stops, or nearly as many claims wait on it as it allows.",
      ),
    finished: z
      .array(finished)
      .readonly()
      .exactOptional()
      .describe("For each of the `finishes` of the claim, whether its end is stored."),
  })
  .meta({
    id: "WorkerClaimAnswer",
    description: "Tasks to run; none if none was ready within `waitS`.",
    examples: [{ attempts: [] }],
  });

const heartbeatStatus = { drain: z.boolean(), now: time, leaseMs: z.int() };

const attemptStatus = {
  attemptToken: z.string(),
  ok: z.boolean().describe("False: the attempt is over. Stop working on it; a finish would change nothing."),
  cancel: reason.exactOptional().describe("Why it is over."),
  messages: z
    .array(
      z.strictObject({
        taskId: z.string().describe("The task of the message. It ends with the task of the attempt."),
        message: z.string(),
        position: z.int().describe("For `messagesAfter` of the next heartbeat."),
      }),
    )
    .readonly()
    .exactOptional()
    .describe("Messages in mode `steer` that the attempt has taken, if the heartbeat asked for them."),
};

const heartbeatAnswer = z
  .strictObject({ attempts: z.array(z.strictObject(attemptStatus)).readonly(), ...heartbeatStatus })
  .meta({
    id: "WorkerHeartbeatAnswer",
    description: "Which attempts the worker still holds.",
    examples: [
      {
        attempts: [{ attemptToken: TOKEN, ok: true }],
        drain: false,
        now: "2026-03-08T12:00:05.000Z",
        leaseMs: 15_000,
      },
    ],
  });

const attemptHeartbeatAnswer = z.strictObject({ ...attemptStatus, ...heartbeatStatus }).meta({
  id: "AttemptHeartbeatAnswer",
  description: "Whether the worker still holds the attempt.",
  examples: [
    { attemptToken: TOKEN, ok: true, drain: false, now: "2026-03-08T12:00:05.000Z", leaseMs: 15_000 },
  ],
});

const finishAnswer = z.strictObject({ attempts: z.array(finished).readonly() }).meta({
  id: "WorkerFinishAnswer",
  description: "For each attempt, whether its end is stored.",
  examples: [{ attempts: [{ attemptToken: TOKEN, recorded: true }] }],
});

const deletedWorker = z.strictObject({ released: z.array(z.string()).readonly() }).meta({
  id: "DeletedWorker",
  description: "The tasks that went back to the queue.",
  examples: [{ released: ["tsk_019a8f6e"] }],
});

const dependency = z.object({ taskId: z.string(), result: z.unknown() }).meta({
  id: "DependencyResult",
  description: "The result of a dependency.",
  examples: [{ taskId: "tsk_019a8f6e", result: 42 }],
});

const attemptSession = z
  .strictObject({
    session: z
      .strictObject({
        generation: z.int().describe("How often the session was reset."),
        contextWindow: z.int().nullable(),
        turns: z
          .array(z.strictObject({ taskId: z.string(), work: z.unknown(), result: z.unknown() }))
          .readonly()
          .describe(
            "The earlier tasks of the same session, agent and generation that are done, oldest first.",
          ),
      })
      .nullable()
      .describe("Null: the task has no session."),
  })
  .meta({
    id: "AttemptSession",
    description: "The session of the task of an attempt, as executors see it.",
    examples: [{ session: { generation: 0, contextWindow: null, turns: [] } }],
  });

// ------------------------------------------------------------------------------------------------------ operations

const tags = ["workers"];
const params = z.strictObject({ id: z.string().describe("The id of a worker.") });
const tokenParams = z.strictObject({ token: z.string().describe("The `attemptToken` of a claim.") });
const errorAnswers = errorAnswersWith({
  not_found: "attempt not found: it ended a while ago, or the token is mistyped",
  conflict:
    'the agent "research" already has an executor: `http`. Give the agent the executor {"type": "worker"}, or register another agent',
  quota_exceeded:
    "there are 1000 workers, which is the limit of the installation: delete one first, or use fewer with more slots",
});

export const registerWorker = {
  operationId: "registerWorker",
  tags,
  summary: "Register a worker",
  description:
    "409 for an agent that another executor runs, 429 while there are as many live workers as there may be. With the `instanceId` of an earlier registration it is the same worker, and this key may act for it from now on.",
  body: requestSchema(WORKER),
  response: {
    201: registered,
    ...errorAnswers("conflict", "quota_exceeded", "draining", "scheduler_disabled", "storage_unavailable"),
  },
};

export const claimTasks = {
  operationId: "claimTasks",
  tags,
  summary: "Claim tasks",
  description:
    "Waits up to `waitS` seconds for a task. The same `claimId` again returns the same attempts. Two claims of a worker may wait at once: a third ends the oldest. With `finishes` it first ends those attempts, as a finish does, and does not wait: one request for the end of some tasks and the start of the next.",
  params,
  body: requestSchema(CLAIM),
  response: {
    200: claimAnswer,
    ...errorAnswers("unknown_worker", "too_many_polls", "scheduler_disabled", "storage_unavailable"),
  },
};

export const heartbeatWorker = {
  operationId: "heartbeatWorker",
  tags,
  summary: "Send a heartbeat",
  description: "Names all attempts that the worker holds. The response says which of them it should stop.",
  params,
  body: requestSchema(HEARTBEAT),
  response: { 200: heartbeatAnswer, ...errorAnswers("unknown_worker", "storage_unavailable") },
};

export const finishAttempts = {
  operationId: "finishAttempts",
  tags,
  summary: "Finish attempts",
  description: "Repeating it changes nothing: the response says `recorded` and `repeated`.",
  params,
  body: requestSchema(FINISH),
  response: { 200: finishAnswer, ...errorAnswers("unknown_worker", "draining", "storage_unavailable") },
};

export const streamSignals = {
  operationId: "streamSignals",
  tags,
  summary: "Stream cancels and drains to a worker",
  description:
    "Server-sent events for the worker itself: `open`, then `cancel` for each of its attempts that Rota ends, and `drain` when it should finish and end. The response to the next heartbeat reports the same. Events may be lost, so a worker sends its heartbeats all the same. A worker has one stream: a second one ends the first. A comment every 15 seconds keeps the connection open.",
  params,
  response: {
    200: {
      description: "A stream that ends when the server stops, or the worker is removed.",
      content: { "text/event-stream": { schema: z.string().meta({ examples: [SIGNALS_EXAMPLE] }) } },
    },
    ...errorAnswers("unknown_worker", "rate_limited", "draining", "storage_unavailable"),
  },
};

export const drainWorker = {
  operationId: "drainWorker",
  tags,
  summary: "Drain a worker",
  description:
    "It gets no more tasks. The responses to its open claim and its next calls, and its stream of signals, ask it to finish and end.",
  params,
  response: { 200: workerInfo, ...errorAnswers("unknown_worker", "storage_unavailable") },
};

export const deleteWorker = {
  operationId: "deleteWorker",
  tags,
  summary: "Delete a worker",
  description:
    "For the worker itself when it ends, and for the role `operator` and above. Tasks that it holds go back to the queue; that counts toward `scheduler.maxLost`.",
  params,
  response: { 200: deletedWorker, ...errorAnswers("unknown_worker", "storage_unavailable") },
};

export const listWorkers = {
  operationId: "listWorkers",
  tags,
  summary: "List workers",
  description: "The workers of the tenant, by name. Lost ones are listed for an hour.",
  querystring: querySchema(WORKER_PAGE),
  response: { 200: workerList, ...errorAnswers("storage_unavailable") },
};

export const getWorker = {
  operationId: "getWorker",
  tags,
  summary: "Get a worker",
  description: "One worker of the tenant.",
  params,
  response: { 200: workerInfo, ...errorAnswers("unknown_worker", "storage_unavailable") },
};

export const heartbeatAttempt = {
  operationId: "heartbeatAttempt",
  tags,
  summary: "Send a heartbeat of one attempt",
  description: "For curl: the same as a heartbeat of the worker, about this attempt alone.",
  params: tokenParams,
  body: optionalRequestSchema(ATTEMPT_HEARTBEAT),
  response: { 200: attemptHeartbeatAnswer, ...errorAnswers("not_found", "storage_unavailable") },
};

export const finishAttempt = {
  operationId: "finishAttempt",
  tags,
  summary: "Finish one attempt",
  description: "For curl: the same as a finish with one attempt.",
  params: tokenParams,
  body: requestSchema(ATTEMPT_FINISH),
  response: { 200: finished, ...errorAnswers("not_found", "draining", "storage_unavailable") },
};

export const readDependency = {
  operationId: "readDependency",
  tags,
  summary: "Read the result of a dependency",
  description:
    "For a result that did not fit into the response to the claim, where it is `{taskId, resultBytes, omitted: true}`.",
  params: tokenParams.extend({ taskId: z.string().describe("The id of a task that the task depends on.") }),
  response: { 200: dependency, ...errorAnswers("not_found", "storage_unavailable") },
};

export const readAttemptSession = {
  operationId: "readAttemptSession",
  tags,
  summary: "Read the session of an attempt",
  description:
    "The session with its newest turns, at most 200 and 1 MiB of them: what `context.session()` returns to a handler in the process of Rota.",
  params: tokenParams,
  querystring: z.strictObject({
    turns: z.string().exactOptional().describe("How many turns to read, 0 to 200. Default: 0."),
  }),
  response: { 200: attemptSession, ...errorAnswers("not_found", "storage_unavailable") },
};
