import { z } from "zod";
import { BULK_ACTIONS, BULK_STATES } from "../model/bulk.ts";
import { BULK_REQUEST } from "../model/input/bulk-input.ts";
import { TASK_STATES } from "../model/task-state.ts";
import { errorAnswersWith } from "./error.ts";
import { requestSchema } from "./input-schema.ts";
import { time } from "./time.ts";

const BULK_EXAMPLE = {
  bulkId: "blk_019a8f6e",
  action: "cancel",
  filter: { state: "queued", agentId: "research" },
  matched: 1_200,
  done: 500,
  failed: 0,
  skipped: 0,
  state: "running",
  by: "key_019a8f6e",
};

const bulkInput = requestSchema(BULK_REQUEST);

const bulkPreview = z
  .strictObject({
    matched: z.int(),
    capped: z.boolean().describe("Whether more than `limit` tasks match."),
    sample: z
      .array(
        z.strictObject({
          taskId: z.string(),
          agentId: z.string(),
          lane: z.string(),
          state: z.enum(TASK_STATES),
          createdAt: time,
        }),
      )
      .readonly()
      .describe("Up to five of the tasks that match."),
  })
  .meta({
    id: "BulkPreview",
    description: "The tasks that a bulk action would act on.",
    examples: [
      {
        matched: 1_200,
        capped: false,
        sample: [
          {
            taskId: "tsk_019a8f6e",
            agentId: "research",
            lane: "tasks",
            state: "queued",
            createdAt: "2026-03-08T12:00:01.000Z",
          },
        ],
      },
    ],
  });

const startedBulk = z.strictObject({ bulkId: z.string(), matched: z.int() }).meta({
  id: "StartedBulk",
  description: "A bulk action that has started.",
  examples: [{ bulkId: "blk_019a8f6e", matched: 1_200 }],
});

const bulk = z
  .strictObject({
    bulkId: z.string(),
    action: z.enum(BULK_ACTIONS),
    filter: z
      .record(z.string(), z.unknown())
      .nullable()
      .describe("The filter of the request; null: the request had `ids`."),
    matched: z.int().describe("Tasks that matched at the time of the request."),
    done: z.int(),
    failed: z.int().describe("Tasks that no longer existed."),
    skipped: z.int().describe("Tasks that a single request would refuse with 409."),
    state: z.enum(BULK_STATES),
    by: z.string().nullable().describe("The id of the API key of the request; null: the request had none."),
  })
  .meta({ id: "Bulk", description: "The progress of a bulk action.", examples: [BULK_EXAMPLE] });

const tags = ["tasks"];
const errorAnswers = errorAnswersWith({
  invalid_field:
    "`filter` is empty and would cover every task: select tasks, for instance by `state` or `agentId`",
  not_found: "bulk action not found",
  conflict: "10 bulk actions run already, which is the limit: wait until one has ended, or abort one",
});
const params = z.strictObject({ id: z.string().describe("The id: `blk_…`.") });

export const startBulk = {
  operationId: "startBulk",
  tags,
  summary: "Cancel, retry or delete many tasks",
  description:
    "Acts on the tasks that were accepted before the request (`retry` and `delete`: that had ended before it), on each at most once. It works in the background, 100 tasks at a time, and continues after a restart. With `dryRun` nothing changes, and the status is 200.",
  body: bulkInput,
  response: {
    200: bulkPreview,
    202: startedBulk,
    ...errorAnswers("conflict", "draining", "scheduler_disabled", "storage_unavailable"),
  },
};

export const getBulk = {
  operationId: "getBulk",
  tags,
  summary: "Read the progress of a bulk action",
  description: "The newest 100 ended bulk actions of a tenant are kept.",
  params,
  response: { 200: bulk, ...errorAnswers("not_found", "storage_unavailable") },
};

export const abortBulk = {
  operationId: "abortBulk",
  tags,
  summary: "Abort a bulk action",
  description:
    "The bulk action ends after the current 100 tasks. Tasks that it has acted on stay as they are. If it has ended already, nothing changes.",
  params,
  response: { 200: bulk, ...errorAnswers("not_found", "storage_unavailable") },
};
