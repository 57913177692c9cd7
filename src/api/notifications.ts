import { z } from "zod";
import { SCHEDULE_NOTIFICATION_KINDS, WORKER_NOTIFICATION_KINDS } from "../model/notification.ts";
import { RUN_STATUSES } from "../model/run.ts";
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
const LOST_EXAMPLE = {
  kind: "worker.lost",
  worker_id: "wrk_01JTQ8Z0",
  name: "py-1",
  agents: ["py"],
  slots: 4,
  attempts: 2,
  reason: "no sign of life for 15000 ms",
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

const timestamp = z.int().describe("When it happened, in seconds since 1970.");

const scheduleNotification = z
  .strictObject({
    kind: z.enum(SCHEDULE_NOTIFICATION_KINDS),
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
    timestamp,
  })
  .meta({ id: "ScheduleNotification", description: "A change of a schedule or of one of its runs." });

const workerNotification = z
  .strictObject({
    kind: z.enum(WORKER_NOTIFICATION_KINDS),
    worker_id: z.string(),
    name: z.string(),
    agents: z.array(z.string()).describe('Its agents; `["*"]`: all that workers may run.'),
    slots: z.int(),
    attempts: z.int().exactOptional().describe("With `worker.lost`: how many attempts it held."),
    reason: z.string().exactOptional().describe("Why it was lost, or that it was lost before it came back."),
    timestamp,
  })
  .meta({ id: "WorkerNotification", description: "A worker registered, or was lost." });

/** The `data` of an event of the stream. Its number is the `id` of the event. */
export const notification = z.discriminatedUnion("kind", [scheduleNotification, workerNotification]).meta({
  id: "Notification",
  description: "The `data` of an event `notification`; its `id` is the number to resume after.",
  examples: [COMPLETED_EXAMPLE, PAUSED_EXAMPLE, LOST_EXAMPLE],
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
  summary: "Stream the notifications of schedules and workers",
  description:
    "Server-sent events: `open`, then a `notification` for each run that starts, ends, is skipped or missed, each schedule that is paused or canceled, and each worker that registers or is lost. The stream sends new notifications, or all after the one that `Last-Event-ID` names. If some of these have been deleted, an event `gap` follows `open`. If the database is restored to an earlier state, the stream sends a `gap`, too. A comment every 30 seconds keeps the connection open.",
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
