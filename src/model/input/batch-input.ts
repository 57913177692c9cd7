import type { BatchTaskInput } from "../batch.ts";
import { callbackUrlOf } from "../callback-url.ts";
import { RotaError } from "../errors.ts";
import { keepOwn } from "../text/own-json.ts";
import { invalidField, isObject, quoted } from "./field-checks.ts";
import { agentId, callbackUrl, number } from "./kinds.ts";
import { readFields } from "./read-fields.ts";
import { type InputOf, type Kind, optional, required, type Schema } from "./schema.ts";
import { type ParsedTask, parseTaskInput, type TaskDefaults } from "./task-input.ts";
import { KEYED_TASK } from "./task-schema.ts";

/** The most tasks of a batch, with an action among them and without. */
export const BATCH_MAX = { actions: 50, others: 100 } as const;

/** The input of a batch. */
export const BATCH = {
  name: "NewBatch",
  noun: "batch",
  description: "Tasks that are submitted together.",
  fields: {
    agentId: optional(agentId(), { description: "The agent of tasks that name none." }),
    callbackUrl: optional(callbackUrl(), {
      description: "The `callbackUrl` of tasks that have none.",
    }),
    webhookUrl: optional(callbackUrl(), { description: "Another name for `callbackUrl`." }),
    batchCallbackUrl: optional(callbackUrl(), {
      description: "URL that receives one `POST` when all tasks have ended.",
    }),
    parallelism: optional(number({ min: 1, max: 10 }), {
      description:
        "How many of the tasks run at once, over all nodes; left out: no limit of the batch's own.",
    }),
    tasks: required(tasks(), {
      description: `At most ${BATCH_MAX.actions} with an action among them, else ${BATCH_MAX.others}.`,
    }),
  },
  examples: [
    {
      agentId: "crawler",
      tasks: [
        { action: "click", tabId: "8f9c7d4e", ref: "e14" },
        { action: "scroll", tabId: "8f9c7d4e", params: { scrollY: 400 }, priority: "low" },
      ],
    },
    {
      parallelism: 2,
      batchCallbackUrl: "https://example.com/hooks/batch",
      tasks: [
        { key: "read", instruction: "Read the page" },
        { key: "sum", instruction: "Sum it up", dependsOn: ["read"] },
      ],
    },
  ],
} as const satisfies Schema;

/** Checks only how many there are: a task is checked when its turn comes, so that a large batch does not block the process. */
function tasks(): Kind<readonly BatchTaskInput[], readonly unknown[]> {
  return {
    shape: {
      type: "list",
      of: { type: "fields", fields: KEYED_TASK.fields },
      min: 1,
      max: BATCH_MAX.others,
    },
    read: checkTasks,
  };
}

export interface ParsedBatch {
  readonly tasks: readonly ParsedTask[];
  /** Null: no limit. */
  readonly parallelism: number | null;
  /** Called when all tasks have ended; null: not set. */
  readonly callbackUrl: string | null;
}

/**
 * Parses a batch. Throws `batch_too_large`, or `invalid_field` for the first invalid task, with its index.
 */
export function* parseBatchSteps(given: unknown, defaults: TaskDefaults): Generator<void, ParsedBatch, void> {
  if (!isObject(given)) {
    throw new RotaError("invalid_field", "a batch must be an object with `tasks`, an array");
  }
  const { agentId, parallelism = null, batchCallbackUrl = null, ...input } = readFields(BATCH, given);
  const callbackUrl = callbackUrlOf(input);
  const inputs = input.tasks.map((task) => {
    const own = isObject(task) ? keepOwn(given, task) : task;
    return withDefaults(own, { agentId, callbackUrl });
  });
  const tasks: ParsedTask[] = [];
  for (const [index, task] of inputs.entries()) {
    tasks.push(parseOneOf(task, index, defaults));
    yield;
  }
  return { tasks, parallelism, callbackUrl: batchCallbackUrl };
}

/** Checks all tasks, before any is stored. */
export function parseTaskInputs(inputs: readonly unknown[], defaults: TaskDefaults): ParsedTask[] {
  return inputs.map((input, index) => parseOneOf(input, index, defaults));
}

function parseOneOf(input: unknown, index: number, defaults: TaskDefaults): ParsedTask {
  try {
    return parseTaskInput(input, defaults, { keyed: true });
  } catch (error) {
    throw atIndex(error, index);
  }
}

/** The error of one of several tasks, with its index. */
export function atIndex(error: unknown, index: number): unknown {
  if (!(error instanceof RotaError)) return error;
  const details = { ...error.details, index };
  return new RotaError(error.code, `tasks[${index}]: ${error.message}`, { details, cause: error });
}

/** Checks the number of tasks. Throws `invalid_field` or `batch_too_large`. */
function checkTasks(given: unknown, field = "tasks"): readonly unknown[] {
  if (!Array.isArray(given)) {
    const form = "must be an array of tasks";
    throw invalidField(
      field,
      given === undefined
        ? `\`${field}\` is missing: it ${form}`
        : `\`${field}\` ${form}, not ${quoted(given)}`,
    );
  }
  if (given.length === 0) throw invalidField(field, `\`${field}\` is empty: a batch has one task at least`);
  const hasAction = given.some((task) => isObject(task) && (task["action"] ?? undefined) !== undefined);
  const max = hasAction ? BATCH_MAX.actions : BATCH_MAX.others;
  if (given.length <= max) return given;
  throw new RotaError(
    "batch_too_large",
    `\`${field}\` has ${given.length} tasks, and a batch ${hasAction ? "with actions" : "without actions"} has at most ${max}: send several`,
    { details: { field, count: given.length, max } },
  );
}

function withDefaults(
  task: unknown,
  { agentId, callbackUrl }: { agentId: string | undefined; callbackUrl: string | null },
): unknown {
  if (!isObject(task)) return task;
  const hasUrl = isThere(task["callbackUrl"]) || isThere(task["webhookUrl"]);
  const filled = {
    ...(agentId === undefined || isThere(task["agentId"]) ? {} : { agentId }),
    ...(callbackUrl === null || hasUrl ? {} : { callbackUrl }),
  };
  return Object.keys(filled).length === 0 ? task : keepOwn(task, { ...task, ...filled });
}

function isThere(value: unknown): boolean {
  return value !== undefined && value !== null;
}

/** Tasks that are submitted together. */
export type BatchInput = InputOf<typeof BATCH.fields>;
