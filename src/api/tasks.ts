import { z } from "zod";
import { PRIORITY_NAMES, type PriorityName } from "../model/priority.ts";
import { ATTEMPT_OUTCOMES, TASK_KINDS } from "../model/task.ts";
import { TASK_STATES } from "../model/task-state.ts";

const time = z.iso.datetime({ offset: true }).describe("RFC 3339, with a zone.");
const anyObject = z.record(z.string(), z.unknown());
const priorityName = z.enum(Object.keys(PRIORITY_NAMES) as [PriorityName, ...PriorityName[]]);

const retryPolicy = z.strictObject({
  maxRetries: z.int(),
  backoffMs: z.number(),
  backoffMultiplier: z.number(),
  maxBackoffMs: z.number(),
  jitter: z.number(),
});

/** What a task can be asked for with. The library checks it, ranges and combinations included, and says what is wrong. */
const work = {
  action: z.string().exactOptional().describe("What to do in a browser tab."),
  tabId: z.string().exactOptional().describe("With `action`: the tab."),
  ref: z.string().exactOptional().describe("With `action`: the element, by its reference."),
  selector: z.string().exactOptional().describe("With `action`: the element, by a CSS selector."),
  params: anyObject.exactOptional().describe("With `action`: whatever else it needs."),
  instruction: z.string().exactOptional().describe("What an agent is to do, in words."),
  llmConfig: anyObject.exactOptional().describe("With `instruction`: settings of the model."),
  message: z.string().exactOptional().describe("Something said to an agent."),
  payload: z.unknown().optional().describe("Any JSON, for an executor of yours."),
};

export const taskInput = z.strictObject({
  ...work,
  agentId: z
    .string()
    .exactOptional()
    .describe("Who does it: `index` unless named; an `action` has to name it."),
  priority: z
    .union([z.int(), priorityName])
    .exactOptional()
    .describe("Lower goes first: `critical` 0, `high` 1, `normal` 2 (default), `low` 3, or any integer."),
  deadline: time
    .exactOptional()
    .describe("When the whole task must have ended, waiting and retries included."),
  timeout: z.int().exactOptional().describe("Milliseconds for each attempt, 1 000 to 600 000."),
  runAt: time.exactOptional().describe("Start not before."),
  retryPolicy: retryPolicy.partial().exactOptional().describe("How it is tried again after a failure."),
  callbackUrl: z
    .string()
    .exactOptional()
    .describe("Where its end is told, with a `POST` of the task as it then is."),
  webhookUrl: z.string().exactOptional().describe("Another name for `callbackUrl`."),
  lane: z.string().exactOptional().describe("The pool of concurrency it runs in."),
  metadata: anyObject.exactOptional().describe("Yours: stored with the task and handed back."),
});

export const submittedTask = z.strictObject({
  taskId: z.string(),
  state: z.enum(TASK_STATES),
  position: z.int(),
  createdAt: time,
});

const attempt = z.strictObject({
  number: z.int(),
  startedAt: time,
  endedAt: time.nullable(),
  outcome: z.enum(ATTEMPT_OUTCOMES).nullable(),
  error: z.string().nullable(),
  node: z.string(),
});

export const task = z.strictObject({
  taskId: z.string(),
  agentId: z.string(),
  kind: z.enum(TASK_KINDS),
  lane: z.string(),
  priority: z.int(),
  state: z.enum(TASK_STATES),
  position: z
    .int()
    .describe("Its place among the agent's waiting tasks at submission; 0: it could not start yet."),
  createdAt: time,
  ...work,
  metadata: anyObject.exactOptional(),
  batchId: z.string().exactOptional().describe("The batch it was handed in with."),
  callbackUrl: z.string().exactOptional().describe("Where its end is told."),
  runAt: time.exactOptional(),
  deadline: time.exactOptional(),
  timeout: z.int().exactOptional(),
  retryPolicy,
  retryCount: z.int(),
  startedAt: time.exactOptional().describe("The first execution."),
  completedAt: time.exactOptional(),
  latencyMs: z.number().exactOptional().describe("From the first start to the end."),
  executionTimeMs: z.number().exactOptional().describe("The last attempt alone."),
  result: z.unknown().optional(),
  error: z.string().exactOptional(),
  attempts: z.array(attempt).readonly(),
});

/** The query of a list. The library checks the values. */
export const taskQuery = z.strictObject({
  agentId: z.string().exactOptional(),
  state: z.string().exactOptional().describe("One state or several, separated by commas."),
  priority: z.string().exactOptional().describe("A number or a name."),
  batchId: z.string().exactOptional(),
  lane: z.string().exactOptional(),
  limit: z.string().exactOptional().describe("How many at most: 1 to 1000, 100 unless given."),
  cursor: z.string().exactOptional().describe("`nextCursor` of the page before."),
});

export const taskPage = z.strictObject({
  tasks: z.array(task).readonly().describe("Newest first."),
  count: z.int().describe("Of this page."),
  nextCursor: z.string().nullable().describe("Null on the last page."),
});

export const cancelledTask = z.strictObject({ status: z.literal("cancelled"), taskId: z.string() });
