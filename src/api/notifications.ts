import { z } from "zod";
import { RUN_STATUSES } from "../model/run.ts";
import { NOTIFICATION_KINDS } from "../model/schedule.ts";
import { errorAnswers } from "./error.ts";

const seconds = z.int().describe("Seconds since 1970; 0: not yet.");

const COMPLETED_EXAMPLE = {
  kind: "run.completed",
  task_id: 17,
  run_id: 42,
  agent_id: "research",
  status: "succeeded",
  started_at: 1746720000,
  completed_at: 1746720185,
  result_summary: "The deploy is green.",
  due_at: 1746720000,
  moments: 1,
  timestamp: 1746720185,
};
const PAUSED_EXAMPLE = {
  kind: "schedule.paused",
  task_id: 17,
  agent_id: "research",
  status: "paused",
  reason: 'agent "research" not found',
  timestamp: 1746720000,
};
const STREAM_EXAMPLE = `retry: 1000
id: 11
event: open
data: {"ok":true}

id: 12
event: notification
data: ${JSON.stringify(COMPLETED_EXAMPLE)}

`;

/** The `data` of an event of the stream. Its number is the `id` of the event. */
export const notification = z
  .strictObject({
    kind: z.enum(NOTIFICATION_KINDS),
    task_id: z.int().describe("The schedule."),
    run_id: z.int().exactOptional().describe("With `run.…`."),
    agent_id: z.string(),
    status: z
      .enum([...RUN_STATUSES, "paused", "canceled"])
      .describe("The status of the run, or the new status of the schedule."),
    started_at: seconds.exactOptional().describe("When the run fired; 0: it did not."),
    completed_at: seconds.exactOptional().describe("When the run ended; 0: it is running."),
    result_summary: z
      .string()
      .exactOptional()
      .describe("With `run.completed`: the beginning of the result, 4 KiB at most."),
    error_message: z.string().exactOptional().describe("With `run.failed`."),
    reason: z.string().exactOptional().describe("Why it was skipped, missed, ended or paused."),
    due_at: seconds.exactOptional().describe("The due time of the run, or the last of several."),
    moments: z.int().exactOptional().describe("How many due times the run covers."),
    timestamp: z.int().describe("When it happened, in seconds since 1970."),
  })
  .meta({
    id: "Notification",
    description: "The `data` of an event `notification`; its `id` is the number to go on from.",
    examples: [COMPLETED_EXAMPLE, PAUSED_EXAMPLE],
  });

const streamQuery = z.strictObject({
  lastEventId: z
    .string()
    .exactOptional()
    .describe("Replaces the header `Last-Event-ID`, which wins if both are present."),
});

const streamHeaders = z.object({
  "last-event-id": z
    .string()
    .exactOptional()
    .describe("The `id` of the last notification seen: the stream resumes after it. 0: all stored ones."),
});

export const streamNotifications = {
  operationId: "streamNotifications",
  tags: ["notifications"],
  summary: "Follow what schedules do",
  description:
    "Server-sent events: `open`, then a `notification` for each run that starts, ends, is skipped or missed and for each schedule that is paused or canceled, from now on or after the one that `Last-Event-ID` names. Should some have been deleted that would have come, an event `gap` follows `open`; should the database be restored to an earlier state, one comes then. A comment every 30 seconds keeps the connection.",
  querystring: streamQuery,
  headers: streamHeaders,
  response: {
    200: {
      description: "A stream that ends when the server stops.",
      content: { "text/event-stream": { schema: z.string().meta({ examples: [STREAM_EXAMPLE] }) } },
    },
    ...errorAnswers("rate_limited", "draining"),
  },
};
