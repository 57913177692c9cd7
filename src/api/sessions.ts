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
    description: "The message is stored and will be answered. With `wait`: the run had not ended in time.",
    examples: [SENT_EXAMPLE],
  });

export const stoppedTasks = z
  .strictObject({
    stopped: z.array(z.string()).readonly().describe("The ids of those that ran."),
    cancelled: z.array(z.string()).readonly().describe("The ids of those that waited."),
  })
  .meta({
    id: "StoppedTasks",
    description: "What was ended; nothing, if there was nothing.",
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
      .describe("Which message goes when one too many arrives: the one that waits longest, or the new one."),
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
    description: "A conversation, with everything that it does not say itself filled in.",
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
  summary: "Say something",
  description:
    "202 means that the message is on disk and will be answered, after those before it. With `wait` the answer comes once the run has ended, and with `Accept: text/event-stream` its events come as they happen, the last one with the end. A caller that disconnects cancels nothing, unless `cancelOnDisconnect` says so. A session that is full and drops what is new answers 429 with `details` `{waiting, cap}`.",
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
  summary: "Look at a session",
  description: "Its settings, how full its context is, and how much of it runs and waits.",
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
  summary: "Stop what has been running longest",
  description:
    "The same as the message `/stop`: ends what has been running longest, or, if none runs, the first that waits for its retry, for a slot or in the debounce window. Answers 200 also with nothing to do.",
  params,
  response: { 200: stoppedTasks, ...errorAnswers("storage_unavailable") },
};

export const stopAllOfSession = {
  operationId: "stopAllOfSession",
  tags,
  summary: "Stop everything of a session",
  description:
    "The same as the message `/stopall`: all that runs or waits is cancelled, and what was sent before and turns up later ends as `stale`.",
  params,
  response: { 200: stoppedTasks, ...errorAnswers("storage_unavailable") },
};

export const resetSession = {
  operationId: "resetSession",
  tags,
  summary: "Begin a session anew",
  description:
    "Stops everything of it and begins a new generation with an empty context: nothing of the old one can change anything.",
  params,
  response: { 200: stoppedTasks, ...errorAnswers("storage_unavailable") },
};
