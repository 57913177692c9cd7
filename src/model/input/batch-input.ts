import { checkAgentId } from "../agent.ts";
import { callbackUrlOf, optionalCallbackUrl } from "../callback-url.ts";
import { RotaError } from "../errors.ts";
import { keepOwn } from "../text/own-json.ts";
import {
  checkKnown,
  invalidField,
  isObject,
  optionalNumber,
  optionalText,
  quoted,
  withoutNulls,
} from "./field-checks.ts";
import { type ParsedTask, parseTaskInput, type TaskDefaults } from "./task-input.ts";

/** The most tasks of a batch, with an action among them and without. */
export const BATCH_MAX = { actions: 50, others: 100 } as const;
/** The range of `parallelism`: how many tasks of a batch run at once. */
export const PARALLELISM = { min: 1, max: 10 } as const;

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
  checkKnown(given, ["agentId", "callbackUrl", "webhookUrl", "batchCallbackUrl", "parallelism", "tasks"]);
  const input = withoutNulls(given);
  const agentId = optionalText(input, "agentId");
  if (agentId !== undefined) checkAgentId(agentId);
  const callbackUrl = callbackUrlOf(input);
  const parallelism = optionalNumber(input, "parallelism", PARALLELISM) ?? null;
  const batchCallbackUrl = optionalCallbackUrl(input, "batchCallbackUrl");
  const inputs = checkTasks(input["tasks"]).map((task) => {
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

/** Checks the number of tasks of a batch of any kind. Throws `invalid_field` or `batch_too_large`. */
export function checkTasks(tasks: unknown): readonly unknown[] {
  if (!Array.isArray(tasks)) {
    throw invalidField("tasks", `\`tasks\` must be an array of tasks, not ${quoted(tasks)}`);
  }
  if (tasks.length === 0) throw invalidField("tasks", "`tasks` is empty: a batch has one task at least");
  const hasAction = tasks.some((task) => isObject(task) && isThere(task["action"]));
  const max = hasAction ? BATCH_MAX.actions : BATCH_MAX.others;
  if (tasks.length > max) {
    throw new RotaError(
      "batch_too_large",
      `\`tasks\` has ${tasks.length} tasks, and a batch ${hasAction ? "with actions" : "without actions"} has at most ${max}: send several`,
      { details: { field: "tasks", count: tasks.length, max } },
    );
  }
  return tasks;
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
