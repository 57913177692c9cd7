import { z } from "zod";
import { PAGE } from "../model/input/page-input.ts";
import { MESSAGE_REQUEST, SESSION_CHANGES } from "../model/input/session-input.ts";
import { DROP_POLICIES, SESSION_MODES } from "../model/session.ts";
import { TASK_STATES } from "../model/task-state.ts";
import { errorAnswersWith } from "./error.ts";
import { querySchema, requestSchema } from "./input-schema.ts";
import { TASK_EXAMPLE, task, warnings } from "./tasks.ts";

const mode = z.enum(SESSION_MODES);

const SESSION_EXAMPLE = {
  key: "user:42",
  agentId: "support",
  lane: "main",
  mode: "queue",
  cap: 10,
  drop: "old",
  debounceMs: 800,
  maxConcurrent: 3,
  effectiveMaxConcurrent: 1,
  tokens: 130_000,
  contextWindow: 200_000,
  generation: 0,
  running: 1,
  queued: 2,
};
const SENT_EXAMPLE = { taskId: "tsk_019a8f6e", state: "delayed", position: 0, merged: false };
const STOPPED_EXAMPLE = { stopped: ["tsk_019a8f6e"], cancelled: ["tsk_019a8f70", "tsk_019a8f71"] };

const sessionMessage = requestSchema(MESSAGE_REQUEST);

export const sentMessage = z
  .strictObject({
    taskId: z.string().describe("Its task, or the task that it was merged into."),
    state: z.enum(TASK_STATES),
    position: z.int(),
    merged: z.boolean().describe("It was merged into an earlier message that had not started yet."),
    warnings,
  })
  .meta({
    id: "SentMessage",
    description: "The message is stored and will run. With `wait`: the run has not ended within `timeout`.",
    examples: [SENT_EXAMPLE],
  });

export const stoppedTasks = z
  .strictObject({
    stopped: z.array(z.string()).readonly().describe("The ids of the tasks that were running."),
    cancelled: z.array(z.string()).readonly().describe("The ids of the tasks that were waiting."),
  })
  .meta({
    id: "StoppedTasks",
    description: "The tasks that were ended; both lists may be empty.",
    examples: [STOPPED_EXAMPLE, { stopped: [], cancelled: [] }],
  });

export const session = z
  .strictObject({
    key: z.string(),
    agentId: z.string().describe("The agent that gets messages that name none."),
    lane: z.string(),
    mode,
    cap: z.int().describe("How many messages may wait."),
    drop: z
      .enum(DROP_POLICIES)
      .describe(
        "What happens to one message too many: `old` cancels the message that waits longest, `new` refuses the new one.",
      ),
    debounceMs: z.int().describe("Messages within this time of each other are merged into one task."),
    maxConcurrent: z.int().describe("How many of its tasks may run at once."),
    effectiveMaxConcurrent: z
      .int()
      .describe("How many of its tasks may run at once now, given how full its context is."),
    tokens: z
      .int()
      .min(0)
      .nullable()
      .describe("How much of its context is used; null: its agent did not report it."),
    contextWindow: z.int().min(1).nullable(),
    generation: z.int().describe("How often it was reset."),
    running: z.int(),
    queued: z.int().describe("All waiting tasks, for any reason."),
  })
  .meta({
    id: "Session",
    description: "A conversation. Settings that it does not have are filled in from the configuration.",
    examples: [SESSION_EXAMPLE],
  });

export const sessionPage = z
  .strictObject({
    sessions: z.array(session).readonly().describe("Newest first."),
    count: z.int().describe("Of this page."),
    nextCursor: z.string().nullable().describe("Null on the last page."),
  })
  .meta({
    id: "SessionPage",
    description: "Sessions, newest first.",
    examples: [{ sessions: [SESSION_EXAMPLE], count: 1, nextCursor: null }],
  });

const sessionChanges = requestSchema(SESSION_CHANGES);

export const deletedSession = z.strictObject({ deleted: z.literal(true) }).meta({
  id: "DeletedSession",
  description:
    "The settings of the session are deleted. The session is listed until its last task is deleted.",
  examples: [{ deleted: true }],
});

const messageAnswer = z.union([task, stoppedTasks]).meta({
  id: "MessageAnswer",
  description: "With `wait` the whole task, once it has ended; of a stop word, what it ended.",
  examples: [TASK_EXAMPLE, STOPPED_EXAMPLE],
});

const STREAM_EXAMPLE = `event: accepted
data: ${JSON.stringify(SENT_EXAMPLE)}

id: 5
event: task.progress
data: {"type":"task.progress","taskId":"tsk_019a8f6e","sessionKey":"user:42","progress":{"text":"I am"}}

`;

// ------------------------------------------------------------------------------------------------------ operations

const tags = ["sessions"];
const errorAnswers = errorAnswersWith({
  not_found: "session not found",
  conflict: "the tenant may have 10000 sessions with settings: delete one first",
  queue_full:
    'the session "user:42" has 10 waiting messages, and its `cap` is 10: retry later, or raise `cap`',
  invalid_field: "`message` must be a string that is not empty",
});
const params = z.strictObject({
  key: z.string().describe("The key, 1 to 256 characters, URL-encoded: a `/` in it is `%2F`."),
});

export const sendMessage = {
  operationId: "sendMessage",
  tags,
  summary: "Send a message to a session",
  description:
    "202 means that the message is on disk and will run after the messages before it. With `wait` the response comes once the run has ended. With `Accept: text/event-stream` the response is the events of the run, until it ends. A caller that disconnects cancels nothing, unless `cancelOnDisconnect` is true. A full session that drops new messages responds 429 with `details` `{waiting, cap}`.",
  params,
  querystring: z.strictObject({
    timeout: z
      .string()
      .exactOptional()
      .describe("With `wait`: seconds after which the response is 202, 1 to 600, by default 120."),
  }),
  body: sessionMessage,
  response: {
    200: {
      description: "With `wait`: the run has ended. To a stop word: what it ended. Or the events of the run.",
      content: {
        "application/json": { schema: messageAnswer },
        "text/event-stream": { schema: z.string().meta({ examples: [STREAM_EXAMPLE] }) },
      },
    },
    202: sentMessage,
    ...errorAnswers(
      "conflict",
      "queue_full",
      "quota_exceeded",
      "rate_limited",
      "draining",
      "scheduler_disabled",
      "storage_unavailable",
    ),
  },
};

export const listSessions = {
  operationId: "listSessions",
  tags,
  summary: "List sessions",
  description: "Newest first, a page at a time.",
  querystring: querySchema(PAGE),
  response: { 200: sessionPage, ...errorAnswers("storage_unavailable") },
};

export const getSession = {
  operationId: "getSession",
  tags,
  summary: "Get a session",
  description:
    "The settings of a session, the fill level of its context, and the number of its running and waiting tasks.",
  params,
  response: { 200: session, ...errorAnswers("not_found", "storage_unavailable") },
};

export const updateSession = {
  operationId: "updateSession",
  tags,
  summary: "Change a session",
  description:
    "Changes the fields that the body names; null resets a field to its default. Works before the first message, too. A session with settings stays until it is deleted. 409 if the tenant has `maxSessions` of them already.",
  params,
  body: sessionChanges,
  response: { 200: session, ...errorAnswers("conflict", "storage_unavailable") },
};

export const deleteSession = {
  operationId: "deleteSession",
  tags,
  summary: "Delete a session",
  description:
    "Deletes its settings, its context and its generation. Its ended tasks stay until their retention ends, and the session is listed until then. 409 while it has running or waiting tasks.",
  params,
  response: { 200: deletedSession, ...errorAnswers("not_found", "conflict", "storage_unavailable") },
};

export const stopSession = {
  operationId: "stopSession",
  tags,
  summary: "Stop the longest-running task of a session",
  description:
    "The same as the message `/stop`: ends the task that has been running longest or, if none runs, the first that waits for its retry, for a slot or in the debounce window. Responds 200 also if there was no such task.",
  params,
  response: { 200: stoppedTasks, ...errorAnswers("storage_unavailable") },
};

export const stopAllOfSession = {
  operationId: "stopAllOfSession",
  tags,
  summary: "Stop all tasks of a session",
  description:
    "The same as the message `/stopall`: cancels all running and waiting tasks. Messages that were sent before and arrive later end as `stale`.",
  params,
  response: { 200: stoppedTasks, ...errorAnswers("storage_unavailable") },
};

export const resetSession = {
  operationId: "resetSession",
  tags,
  summary: "Reset a session",
  description:
    "Stops all tasks of the session, and starts a new generation with an empty context, which tasks of the old generation cannot change.",
  params,
  response: { 200: stoppedTasks, ...errorAnswers("storage_unavailable") },
};
