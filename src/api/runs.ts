import { z } from "zod";
import { RUN_FILTER } from "../model/input/schedule-filters.ts";
import { RUN_STATUSES } from "../model/run.ts";
import { errorAnswersWith } from "./error.ts";
import { querySchema } from "./input-schema.ts";
import { seconds } from "./time.ts";

const RUN_EXAMPLE = {
  id: 42,
  task_id: 17,
  agent_id: "research",
  queue_task_id: "tsk_019a8f6e",
  due_at: 1_778_482_800,
  moments: 1,
  status: "succeeded",
  reason: null,
  started_at: 1_778_482_800,
  completed_at: 1_778_482_985,
  request_id: "req_019a8f6e",
  result_summary: "12 pull requests were merged.",
  error_message: null,
  input_tokens: 5_210,
  output_tokens: 311,
  attempt: 1,
};
const SKIPPED_EXAMPLE = {
  ...RUN_EXAMPLE,
  id: 43,
  queue_task_id: null,
  due_at: 1_779_087_600,
  status: "skipped",
  reason: "the previous run has not ended",
  started_at: 0,
  completed_at: 1_779_087_600,
  request_id: null,
  result_summary: null,
  input_tokens: 0,
  output_tokens: 0,
  attempt: 0,
};

const run = z
  .strictObject({
    id: z.int().describe("Grows with every run."),
    task_id: z.int().describe("The schedule."),
    agent_id: z.string(),
    queue_task_id: z.string().nullable().describe("Its task: `GET /tasks/{id}` shows it."),
    due_at: seconds.describe("The due time; of several, the last."),
    moments: z.int().describe("How many due times it covers."),
    status: z.enum(RUN_STATUSES).describe("`skipped` and `missed` runs never started."),
    reason: z.string().nullable().describe("Why it was skipped or missed, or why a caller ended it."),
    started_at: seconds.describe("When it fired; 0: it did not."),
    completed_at: seconds.describe("When it ended, or was recorded as skipped or missed; 0: it is running."),
    request_id: z.string().nullable(),
    result_summary: z
      .string()
      .nullable()
      .describe("The result, at most 4 KiB; if cut, it ends in `[truncated]`."),
    error_message: z.string().nullable(),
    input_tokens: z.number(),
    output_tokens: z.number(),
    attempt: z.int().describe("The number of the last attempt."),
  })
  .meta({
    id: "Run",
    description: "One due time of a schedule, or several together, and its outcome.",
    examples: [RUN_EXAMPLE, SKIPPED_EXAMPLE],
  });

export const shownRun = z.strictObject({ run }).meta({
  id: "ShownRun",
  description: "One run.",
  examples: [{ run: RUN_EXAMPLE }],
});

export const runPage = z
  .strictObject({
    runs: z.array(run).readonly().describe("Newest first."),
    count: z.int().describe("Of this page."),
    next_cursor: z.string().nullable().describe("Null on the last page."),
  })
  .meta({
    id: "RunPage",
    description: "Runs, newest first.",
    examples: [{ runs: [SKIPPED_EXAMPLE, RUN_EXAMPLE], count: 2, next_cursor: null }],
  });

// ------------------------------------------------------------------------------------------------------ operations

const tags = ["schedules"];
const errorAnswers = errorAnswersWith({ not_found: "run not found" });

/** The filter of runs, of all schedules or of one. */
export const runQuery = querySchema(RUN_FILTER);

export const listRuns = {
  operationId: "listRuns",
  tags,
  summary: "List the runs of all schedules",
  description: "Newest first, a page at a time. Runs are kept for 90 days (`schedules.runRetentionDays`).",
  querystring: runQuery,
  response: { 200: runPage, ...errorAnswers("storage_unavailable") },
};

export const getRun = {
  operationId: "getRun",
  tags,
  summary: "Get a run",
  description: "One due time of a schedule and its outcome.",
  params: z.strictObject({ id: z.string().describe("The `id`, a number.") }),
  response: { 200: shownRun, ...errorAnswers("not_found", "storage_unavailable") },
};
