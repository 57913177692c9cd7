import { z } from "zod";
import { BULK_ACTIONS, BULK_STATES } from "../model/bulk.ts";
import { TASK_STATES } from "../model/task-state.ts";
import { errorAnswersWith } from "./error.ts";
import { orNull } from "./nullable.ts";
import { priority } from "./tasks.ts";
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

const stateNames = z.union([z.string(), z.array(z.string()).readonly()]);

const bulkFilter = z.strictObject(
  orNull({
    agentId: z.string().exactOptional(),
    state: stateNames
      .exactOptional()
      .describe("States; those that the action has nothing to do with do not count."),
    priority: priority.exactOptional(),
    batchId: z.string().exactOptional(),
    sessionKey: z.string().exactOptional(),
    lane: z.string().exactOptional(),
    scheduleId: z.int().exactOptional(),
    q: z
      .string()
      .exactOptional()
      .describe("The id of a task or its beginning, the id of a batch, or a `key` in a batch."),
    from: z.string().exactOptional().describe("Created then or later, RFC 3339."),
    to: z.string().exactOptional().describe("Created before that, RFC 3339."),
  }),
);

const bulkInput = z
  .strictObject(
    orNull({
      action: z.enum(BULK_ACTIONS).describe("`delete` deletes tasks that have ended."),
      ids: z
        .array(z.string())
        .readonly()
        .exactOptional()
        .describe("1 to 1000 ids of tasks: either these or a `filter`."),
      filter: bulkFilter.exactOptional().describe("As for the list of tasks; an empty one is refused."),
      dryRun: z.boolean().exactOptional().describe("Only say how many tasks it would cover."),
      limit: z.int().exactOptional().describe("How many tasks at most: 1 to 100 000, which is the default."),
    }),
  )
  .meta({
    id: "BulkRequest",
    description: "One action on many tasks.",
    examples: [{ action: "cancel", filter: { state: "queued", agentId: "research" }, dryRun: true }],
  });

const bulkPreview = z
  .strictObject({
    matched: z.int(),
    capped: z.boolean().describe("Whether there are more than `limit`."),
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
      .describe("Up to five of them."),
  })
  .meta({
    id: "BulkPreview",
    description: "What a bulk action would cover.",
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
  description: "A bulk action that has begun.",
  examples: [{ bulkId: "blk_019a8f6e", matched: 1_200 }],
});

const bulk = z
  .strictObject({
    bulkId: z.string(),
    action: z.enum(BULK_ACTIONS),
    filter: z
      .record(z.string(), z.unknown())
      .nullable()
      .describe("As it was asked for; null: tasks were named."),
    matched: z.int().describe("How many tasks fitted when it was asked for."),
    done: z.int(),
    failed: z.int().describe("Tasks that no longer existed."),
    skipped: z.int().describe("Tasks that the action could not be applied to."),
    state: z.enum(BULK_STATES),
    by: z.string().nullable().describe("The id of the key that asked for it; null: there was none."),
  })
  .meta({ id: "Bulk", description: "How far a bulk action is.", examples: [BULK_EXAMPLE] });

const tags = ["tasks"];
const errorAnswers = errorAnswersWith({
  invalid_field:
    "`filter` is empty and would cover every task: say which, for instance by `state` or `agentId`",
  not_found: "bulk action not found",
  conflict: "10 bulk actions run already, and no more may: wait until one has ended, or abort one",
});
const params = z.strictObject({ id: z.string().describe("The id: `blk_…`.") });

export const startBulk = {
  operationId: "startBulk",
  tags,
  summary: "Cancel, retry or delete many tasks",
  description:
    "Covers the tasks accepted before the request (`retry` and `delete`: ended before it), each at most once, in slices in the background. It goes on after a restart. With `dryRun` nothing changes, and the status is 200.",
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
  summary: "See how far a bulk action is",
  description: "The newest 100 of a tenant that have ended are kept.",
  params,
  response: { 200: bulk, ...errorAnswers("not_found", "storage_unavailable") },
};

export const abortBulk = {
  operationId: "abortBulk",
  tags,
  summary: "Abort a bulk action",
  description:
    "It ends after the slice under way; what was done stays done. One that has ended stays as it is.",
  params,
  response: { 200: bulk, ...errorAnswers("not_found", "storage_unavailable") },
};
