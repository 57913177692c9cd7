import { z } from "zod";
import { BATCH } from "../model/input/batch-input.ts";
import { TASK_STATES } from "../model/task-state.ts";
import { errorAnswers } from "./error.ts";
import { requestSchema } from "./input-schema.ts";
import { warnings } from "./tasks.ts";
import { time } from "./time.ts";

const batchInput = requestSchema(BATCH);

export const submittedBatch = z
  .strictObject({
    batchId: z.string(),
    tasks: z
      .array(
        z.strictObject({
          taskId: z.string(),
          key: z.string().exactOptional().describe("Its name in `dependsOn` of the other tasks."),
          state: z.enum(TASK_STATES),
          position: z.int(),
          error: z.string().exactOptional().describe("Why it was rejected."),
        }),
      )
      .readonly()
      .describe("In the order of submission."),
    taskIds: z.array(z.string()).readonly().describe("Of all of them, rejected ones included."),
    submitted: z.int().describe("How many were accepted."),
    count: z.int().describe("How many were submitted."),
    createdAt: time,
    warnings,
  })
  .meta({
    id: "SubmittedBatch",
    description: "The states of the tasks of a batch.",
    examples: [
      {
        batchId: "bat_019a8f6e",
        tasks: [
          { taskId: "tsk_019a8f70", state: "queued", position: 1 },
          { taskId: "tsk_019a8f71", state: "rejected", position: 0, error: "rejected: agent queue full" },
        ],
        taskIds: ["tsk_019a8f70", "tsk_019a8f71"],
        submitted: 1,
        count: 2,
        createdAt: "2026-03-08T12:00:01.000Z",
      },
    ],
  });

export const submitBatch = {
  operationId: "submitBatch",
  tags: ["tasks"],
  summary: "Submit many tasks at once",
  description:
    "All tasks are checked before any is stored: if one is malformed, the whole batch is refused, and the error names its index. Then each task is accepted or rejected by itself.",
  body: batchInput,
  response: {
    202: submittedBatch,
    ...errorAnswers(
      "quota_exceeded",
      "unknown_key",
      "dependency_cycle",
      "batch_too_large",
      "draining",
      "scheduler_disabled",
      "storage_unavailable",
    ),
  },
};

const batchId = z.strictObject({ id: z.string().describe("The batch's id.") });

export const batch = z
  .strictObject({
    batchId: z.string(),
    parallelism: z.int().nullable().describe("How many of its tasks run at once; null: no bound of its own."),
    createdAt: time,
    completedAt: time.exactOptional().describe("When all of its tasks had ended, for the first time."),
    counts: z.partialRecord(z.enum(TASK_STATES), z.int()).describe("States without any are left out."),
    tasks: z
      .array(
        z.strictObject({
          taskId: z.string(),
          key: z.string().exactOptional(),
          agentId: z.string(),
          state: z.enum(TASK_STATES),
          error: z.string().exactOptional(),
        }),
      )
      .readonly()
      .describe("In the order they were accepted."),
    edges: z
      .array(z.strictObject({ from: z.string(), to: z.string() }))
      .readonly()
      .describe("The dependencies: `to` starts after `from`."),
  })
  .meta({
    id: "Batch",
    description: "A batch with the states of its tasks.",
    examples: [
      {
        batchId: "bat_019a8f6e",
        parallelism: 1,
        createdAt: "2026-03-08T12:00:01.000Z",
        counts: { done: 1, running: 1 },
        tasks: [
          { taskId: "tsk_019a8f70", key: "read", agentId: "index", state: "done" },
          { taskId: "tsk_019a8f71", agentId: "index", state: "running" },
        ],
        edges: [{ from: "tsk_019a8f70", to: "tsk_019a8f71" }],
      },
    ],
  });

export const getBatch = {
  operationId: "getBatch",
  tags: ["tasks"],
  summary: "Get a batch",
  description: "The states of its tasks, and which task waits for which.",
  params: batchId,
  response: { 200: batch, ...errorAnswers("not_found", "storage_unavailable") },
};

export const cancelBatch = {
  operationId: "cancelBatch",
  tags: ["tasks"],
  summary: "Cancel a batch",
  description: "Cancels all of its tasks that have not ended.",
  params: batchId,
  response: {
    200: z.strictObject({ cancelled: z.int().describe("The number of cancelled tasks.") }).meta({
      id: "CancelledBatch",
      description: "The result of cancelling a batch.",
      examples: [{ cancelled: 3 }],
    }),
    ...errorAnswers("not_found", "storage_unavailable"),
  },
};
