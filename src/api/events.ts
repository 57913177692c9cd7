import { z } from "zod";
import { EVENT_TYPES } from "../model/event.ts";
import { EVENT_FILTER } from "../model/input/events-options.ts";
import { TASK_STATES } from "../model/task-state.ts";
import { errorAnswers } from "./error.ts";
import { querySchema } from "./input-schema.ts";
import { time } from "./time.ts";

const EVENT_EXAMPLE = {
  type: "task.completed",
  tenantId: "default",
  taskId: "tsk_019a8f6e",
  agentId: "index",
  lane: "tasks",
  state: "done",
  timestamp: "2026-03-08T12:00:01.005Z",
  result: { n: 1 },
};
const BATCH_EXAMPLE = {
  type: "batch.completed",
  tenantId: "default",
  taskId: "tsk_019a8f6e",
  agentId: "index",
  lane: "tasks",
  batchId: "bat_019a8f6a",
  state: "done",
  timestamp: "2026-03-08T12:00:01.005Z",
  counts: { done: 2, failed: 1 },
};
const STREAM_EXAMPLE = `retry: 1000

id: 3
event: ${EVENT_EXAMPLE.type}
data: ${JSON.stringify(EVENT_EXAMPLE)}

`;

/** The `data` of an event of the stream. Its number is the `id` of the event. */
export const event = z
  .strictObject({
    type: z.enum(EVENT_TYPES),
    tenantId: z.string(),
    taskId: z.string().describe("With `batch.completed`: of its tasks, the one that was accepted last."),
    agentId: z.string(),
    lane: z.string(),
    batchId: z.string().exactOptional(),
    sessionKey: z.string().exactOptional(),
    scheduleId: z.int().exactOptional().describe("The schedule that the task is a run of."),
    state: z.enum(TASK_STATES).describe("The state of the task after the change."),
    timestamp: time,
    result: z
      .unknown()
      .optional()
      .describe("With `task.completed`; empty with `task.cancelled` of a task that has a session."),
    error: z
      .string()
      .exactOptional()
      .describe(
        "With `task.failed`, `task.cancelled`, `task.rejected`, `task.retrying` and `task.preempted`: why.",
      ),
    progress: z.unknown().optional().describe("With `task.progress`: what the executor reported."),
    attempt: z
      .int()
      .exactOptional()
      .describe(
        "With `task.started`: the attempt that starts; with `task.retrying` and `task.preempted`: the one that ended.",
      ),
    retryAt: time.exactOptional().describe("With `task.retrying`: when the next try may start."),
    counts: z
      .partialRecord(z.enum(TASK_STATES), z.int())
      .exactOptional()
      .describe("With `batch.completed`: how many of its tasks ended in which state."),
  })
  .meta({
    id: "Event",
    description: "The `data` of an event; its `id` is the number to resume after, its `event` the type.",
    examples: [EVENT_EXAMPLE, BATCH_EXAMPLE],
  });

/** The `data` of the event `gap`. */
export const gap = z
  .strictObject({
    after: z.int().describe("The number that the client sent, or saw last."),
    oldest: z.int().describe("The oldest stored event."),
  })
  .meta({
    id: "Gap",
    description:
      "The `data` of the event `gap`: some events after the requested one have been deleted or, if `oldest` is not above `after`, the database was restored to an earlier state. A client that keeps a copy of tasks should read them again.",
    examples: [{ after: 17, oldest: 400 }],
  });

const eventQuery = z.strictObject({
  agentId: z.string().exactOptional().describe("Only events of this agent."),
  batchId: z.string().exactOptional().describe("Only events of this batch."),
  sessionKey: z.string().exactOptional().describe("Only events of this session."),
  scheduleId: z.string().exactOptional().describe("Only events of runs of this schedule."),
  lastEventId: z
    .string()
    .exactOptional()
    .describe("Replaces the header `Last-Event-ID`, which wins if both are present."),
});

const eventHeaders = z.object({
  "last-event-id": z
    .string()
    .exactOptional()
    .describe("The `id` of the last event seen: the stream resumes after it. 0: all stored events."),
});

const eventPage = z
  .strictObject({
    events: z
      .array(
        z
          .strictObject({
            seq: z.int().describe("The number of the event. Numbers increase."),
            ...event.shape,
          })
          .meta({
            id: "NumberedEvent",
            description: "An event with its number.",
            examples: [{ seq: 3, ...EVENT_EXAMPLE }],
          }),
      )
      .readonly()
      .describe("Oldest first if the request has `after`, otherwise newest first."),
    count: z
      .int()
      .describe(
        "Events on this page. A page ends early if its events are large (4 MiB), or if few events of the log match.",
      ),
    next: z
      .int()
      .nullable()
      .describe(
        "For the next page, send it as `after` if the request had `after`, otherwise as `before`. Null on the last page.",
      ),
  })
  .meta({
    id: "EventPage",
    description: "A page of stored events.",
    examples: [{ events: [{ seq: 3, ...EVENT_EXAMPLE }], count: 1, next: null }],
  });

export const listEvents = {
  operationId: "listEvents",
  tags: ["events"],
  summary: "List stored events",
  description:
    "A page of the events of the tenant: newest first, or with `after` oldest first. A request reads a bounded part of the log, so a page may be short or empty before the end: continue until `next` is null. Events are kept as long as tasks.",
  querystring: querySchema(EVENT_FILTER),
  response: { 200: eventPage, ...errorAnswers("storage_unavailable") },
};

export const streamEvents = {
  operationId: "streamEvents",
  tags: ["events"],
  summary: "Stream the events of tasks",
  description:
    "Server-sent events: new ones, or all after the one that `Last-Event-ID` names, each once. If some of these have been deleted, the stream starts with an event `gap`. If the database is restored to an earlier state, it sends a `gap`, too. A comment every 15 seconds keeps the connection open.",
  querystring: eventQuery,
  headers: eventHeaders,
  response: {
    200: {
      description: "A stream that ends when the server stops.",
      content: { "text/event-stream": { schema: z.string().meta({ examples: [STREAM_EXAMPLE] }) } },
    },
    ...errorAnswers("rate_limited", "draining"),
  },
};
