import type { Executor } from "./executors/executor.ts";
import type { RotaEvent } from "./model/event.ts";
import type { PriorityName } from "./model/priority.ts";
import type { SchedulerStats } from "./model/scheduler-stats.ts";
import type { SubmitInput, SubmittedTask } from "./model/submit-input.ts";
import type { Task } from "./model/task.ts";
import type { TaskState } from "./model/task-state.ts";
import type { AgentOptions } from "./rota-options.ts";

/**
 * A scheduler in this process.
 *
 * @example
 * const rota = await createRota({ storage: "sqlite:rota.db" });
 * rota.agent("research", async (task, { signal }) => askModel(task.instruction, { signal }));
 * await rota.start();
 * const { taskId } = await rota.tasks.submit({ agentId: "research", instruction: "What is new?" });
 * const task = await rota.tasks.wait(taskId);
 * await rota.stop();
 */
export interface Rota {
  readonly tasks: Tasks;
  readonly state: RotaState;

  /**
   * Makes an agent known, or changes it: who does its work, where, and how much of it at once. Limits hold once
   * `start()` has answered, and right away when it already runs.
   *
   * @example
   * rota.agent("research", async (task, { signal, progress }) => …);
   * rota.agent("crawler", { lane: "subagent", maxInflight: 2 }, async (task) => …);
   */
  agent(id: string, handler: Executor): void;
  agent(id: string, options: AgentOptions, handler?: Executor): void;

  /** Begins to run tasks. What was submitted before waits for it, durably. */
  start(): Promise<void>;
  /**
   * Takes no new work and starts none, gives what runs `graceMs` to end, then aborts it: back to the queue if it has
   * retries left, else failed with `interrupted by shutdown`. Reads and events go on.
   */
  drain(options?: { graceMs?: number }): Promise<void>;
  /** Drains, then lets go of the storage. Stopping twice is fine. */
  stop(options?: { graceMs?: number }): Promise<void>;

  /**
   * What happens, in order, from now on or after an event seen before. A reader that falls behind misses nothing and
   * holds up nobody.
   *
   * @example
   * for await (const event of rota.events({ after: lastSeen })) console.log(event.type, event.taskId);
   */
  events(options?: EventsOptions): AsyncIterableIterator<RotaEvent, undefined>;
  /** Calls `handler` with everything that happens from now on, in order; returns what undoes it. */
  onEvent(handler: (event: RotaEvent) => void | Promise<void>): () => void;

  stats(): Promise<SchedulerStats>;
  /** Whether the storage answers. */
  health(): Promise<{ readonly storage: "ok" | "unavailable" }>;
}

/** `stopped` has let go of everything; `drained` still answers reads. */
export type RotaState = "created" | "running" | "draining" | "drained" | "stopped";

export interface EventsOptions {
  /** The `seq` of the last event seen; 0 for all there are; left out: from now on. */
  readonly after?: number;
  /** Ends the iteration. */
  readonly signal?: AbortSignal;
  /** Called before the first event if some after `after` have been deleted, or are of another storage. */
  readonly onGap?: (gap: { readonly after: number; readonly oldest: number }) => void;
}

export interface Tasks {
  /**
   * Stores a task to be run; durable once this answers. Throws a `RotaError`: `invalid_field` says what to write
   * instead, `queue_full` that there is no room (the task is kept as `rejected`).
   */
  submit(input: SubmitInput): Promise<SubmittedTask>;
  /** All are checked before any is stored; then each is admitted or rejected by itself, in order. */
  submitMany(inputs: readonly SubmitInput[]): Promise<SubmittedManyTask[]>;
  /** Throws `not_found`. */
  get(taskId: string): Promise<Task>;
  /** Newest first, a page at a time: `limit` tasks, or fewer if they are large. */
  list(filter?: TaskFilter): Promise<TaskPage>;
  /** Ends a task for good, waiting or running. Throws `not_found`, and `conflict` when it has already ended. */
  cancel(taskId: string): Promise<{ readonly status: "cancelled"; readonly taskId: string }>;
  /** Puts a failed or cancelled task back into the queue. Throws `not_found`, and `conflict` for any other. */
  retry(taskId: string): Promise<SubmittedTask>;
  /**
   * Answers with the task once it has ended, however it ended. Throws `not_found`; the signal's reason when that
   * fires; and after `timeoutMs` the `TimeoutError` that `AbortSignal.timeout` would give.
   */
  wait(taskId: string, options?: { signal?: AbortSignal; timeoutMs?: number }): Promise<Task>;
  /** How many tasks are in each state. */
  counts(): Promise<{
    readonly counts: Readonly<Partial<Record<TaskState, number>>>;
    readonly total: number;
  }>;
}

export interface SubmittedManyTask extends SubmittedTask {
  /** Why it was rejected. */
  readonly error?: string;
}

/** `pending` stands for `queued`, `completed` for `done`. */
export type TaskStateFilter = TaskState | "pending" | "completed";

export interface TaskFilter {
  readonly agentId?: string;
  readonly state?: TaskStateFilter | readonly TaskStateFilter[];
  readonly priority?: number | PriorityName;
  readonly lane?: string;
  /** 100 unless told, at most 1000. */
  readonly limit?: number;
  /** `nextCursor` of the page before. */
  readonly cursor?: string;
}

export interface TaskPage {
  readonly tasks: readonly Task[];
  /** Of this page. */
  readonly count: number;
  /** Null on the last page. */
  readonly nextCursor: string | null;
}
