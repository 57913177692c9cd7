import type { TaskLog, TaskLogFilter } from "../interface/task-logs.ts";
import type {
  CancelledTask,
  CancelOptions,
  TaskCounts,
  TaskDryRun,
  TaskFilter,
  TaskPage,
  TaskRetryOptions,
  TaskRowPage,
  Tasks,
  WaitOptions,
} from "../interface/tasks.ts";
import type { Batch, SubmittedBatch } from "../model/batch.ts";
import { RotaError } from "../model/errors.ts";
import type { Explanation } from "../model/explanation.ts";
import type { BatchInput } from "../model/input/batch-input.ts";
import type { SubmitInput, SubmittedTask } from "../model/input/submit-input.ts";
import type { Task } from "../model/task.ts";
import { looksLikeTaskId } from "../model/task-id.ts";
import type { CallOptions } from "./call-options.ts";
import type { Connection } from "./connection.ts";
import { TaskWaiter } from "./task-waiter.ts";

/** Tasks over HTTP. */
export class HttpTasks implements Tasks {
  readonly #connection: Connection;
  readonly #waiter: TaskWaiter;

  constructor(connection: Connection) {
    this.#connection = connection;
    this.#waiter = new TaskWaiter(connection);
  }

  submit(input: SubmitInput, { signal }: CallOptions = {}): Promise<SubmittedTask> {
    const repeatable = hasKey(input);
    return this.#connection.ask({
      method: "POST",
      path: "/v1/tasks",
      body: input ?? null,
      signal,
      repeatable,
    });
  }

  dryRun(input: SubmitInput, { signal }: CallOptions = {}): Promise<TaskDryRun> {
    return this.#connection.ask({
      method: "POST",
      path: "/v1/tasks",
      query: { dryRun: true },
      body: input ?? null,
      signal,
      // It stores nothing.
      repeatable: true,
    });
  }

  submitBatch(input: BatchInput, { signal }: CallOptions = {}): Promise<SubmittedBatch> {
    return this.#connection.ask({ method: "POST", path: "/v1/tasks/batch", body: input ?? null, signal });
  }

  getBatch(batchId: string, { signal }: CallOptions = {}): Promise<Batch> {
    return this.#connection.ask({ path: batchPath(batchId), signal });
  }

  cancelBatch(batchId: string, { signal }: CallOptions = {}): Promise<{ cancelled: number }> {
    return this.#connection.ask({ method: "POST", path: `${batchPath(batchId)}/cancel`, signal });
  }

  async get(taskId: string, { signal }: CallOptions = {}): Promise<Task> {
    return this.#connection.ask({ path: taskPath(taskId), signal });
  }

  async explain(taskId: string, { signal }: CallOptions = {}): Promise<Explanation> {
    return this.#connection.ask({ path: `${taskPath(taskId)}/explain`, signal });
  }

  async logs(taskId: string, filter: TaskLogFilter = {}, { signal }: CallOptions = {}): Promise<TaskLog> {
    return this.#connection.ask({ path: `${taskPath(taskId)}/logs`, query: { ...filter }, signal });
  }

  list(filter: TaskFilter = {}, { signal }: CallOptions = {}): Promise<TaskPage> {
    return this.#connection.ask({ path: "/v1/tasks", query: withMoments(filter), signal });
  }

  listRows(filter: TaskFilter = {}, { signal }: CallOptions = {}): Promise<TaskRowPage> {
    return this.#connection.ask({
      path: "/v1/tasks",
      query: { ...withMoments(filter), view: "row" },
      signal,
    });
  }

  async cancel(taskId: string, { tree, signal }: CancelOptions & CallOptions = {}): Promise<CancelledTask> {
    return this.#connection.ask({
      method: "POST",
      path: `${taskPath(taskId)}/cancel`,
      query: { tree },
      signal,
      repeatable: true,
      whenDone: ({ code, details }): CancelledTask | undefined =>
        code === "conflict" && details?.["state"] === "cancelled"
          ? { status: "cancelled", taskId }
          : undefined,
    });
  }

  async retry(
    taskId: string,
    { dependants, signal }: TaskRetryOptions & CallOptions = {},
  ): Promise<SubmittedTask> {
    return this.#connection.ask({
      method: "POST",
      path: `${taskPath(taskId)}/retry`,
      query: { dependants },
      signal,
    });
  }

  async submitAgain(
    taskId: string,
    input?: SubmitInput,
    { signal }: CallOptions = {},
  ): Promise<SubmittedTask> {
    return this.#connection.ask({
      method: "POST",
      path: `${taskPath(taskId)}/submit-again`,
      ...(input === undefined ? {} : { body: input }),
      signal,
      repeatable: hasKey(input),
    });
  }

  async wait(taskId: string, options: WaitOptions = {}): Promise<Task> {
    return this.#waiter.wait(taskPath(taskId), options);
  }

  counts({ signal }: CallOptions = {}): Promise<TaskCounts> {
    return this.#connection.ask({ path: "/v1/tasks/stats", signal });
  }
}

/** Times as the server reads them. The server refuses wrong ones. */
function withMoments({ from, to, ...filter }: TaskFilter): Record<string, unknown> {
  const text = (moment: string | Date) => (moment instanceof Date ? (moment.toJSON() ?? "") : moment);
  return {
    ...filter,
    ...(from === undefined ? {} : { from: text(from) }),
    ...(to === undefined ? {} : { to: text(to) }),
  };
}

/** The same key returns the same task, however often it is sent. */
function hasKey(input: SubmitInput | null | undefined): boolean {
  return input?.idempotencyKey !== undefined;
}

/** Routes at the place of a task id. */
const NOT_TASKS: readonly string[] = ["batch", "batches", "bulk", "events", "stats"];

/** A text that cannot be an id might lead to another route, so no request is sent. */
function taskPath(taskId: string): string {
  if (!looksLikeTaskId(taskId) || NOT_TASKS.includes(taskId)) {
    throw new RotaError("not_found", "task not found");
  }
  return `/v1/tasks/${taskId}`;
}

function batchPath(batchId: string): string {
  return `/v1/tasks/batches/${encodeURIComponent(batchId)}`;
}
