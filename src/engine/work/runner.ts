import { cleanText, ERROR_BYTES_MAX, failureOf } from "../../attempts/attempt-error.ts";
import { noExecutorHere } from "../../executors/errors.ts";
import type { Executor, SignedContent, SignOptions, TaskSession, Usage } from "../../executors/executor.ts";
import type { Clock, Timer } from "../../model/clock.ts";
import type { Log } from "../../model/log.ts";
import type { Outcome } from "../../model/outcome.ts";
import type { TakenMessage } from "../../model/session.ts";
import { DEPENDENCY_BYTES_MAX } from "../../model/task.ts";
import type { TaskLogLevel } from "../../model/task-log.ts";
import { type TaskRecord, toExecutorTask } from "../../model/task-record.ts";
import { hideTaskTokensIn } from "../../model/text/task-token-mask.ts";
import { TurnBudget } from "../../services/turn-budget.ts";
import type { ClaimedTask } from "../../storage/storage.ts";
import { Attempt, type AttemptHooks, NO_TASK_TOKENS, type TaskTokenHooks } from "./attempt.ts";
import type { ReadDependencies } from "./dependency-results.ts";
import { type Checked, checkJson, checkJsonSteps, RESULT_BYTES_MAX } from "./result-json.ts";
import type { RunningBytes } from "./running-bytes.ts";
import { SecretHider } from "./secret-hider.ts";

/** An executor that still runs this long after its abort is named in the log. */
const IGNORED_ABORT_MS = 5_000;
/** Deadlines are times of the wall clock, which may jump: check at least this often. */
const DEADLINE_LOOK_MS = 5_000;

/** An attempt that holds at least this much may have a large result. */
const LARGE_BYTES = 65_536;
/** How much of large results is checked in one turn of the event loop. */
const CHECKED_PER_TURN = { pieces: 4, bytes: 262_144, rest: 2 } as const;

export interface RunnerOptions {
  readonly clock: Clock;
  /** The storage's time: deadlines are in it. */
  readonly storageNow: () => number;
  readonly log: Log;
  readonly findExecutor: (record: TaskRecord) => Executor | undefined;
  /** Counts the bytes that running tasks hold. */
  readonly memory: RunningBytes;
  /** Reads the results of a task's dependencies for its executor. Gives up when the signal fires. */
  readonly readDependencies: (record: TaskRecord, signal: AbortSignal) => Promise<ReadDependencies>;
  /** Called once for each attempt, when its outcome is decided. */
  readonly onOutcome: (attempt: Attempt, outcome: Outcome) => void;
  /** Called instead of `onOutcome` when the attempt lost its lease. */
  readonly onFenced: (attempt: Attempt) => void;
  readonly onProgress: (attempt: Attempt, data: unknown) => void;
  /** Called with each line that an executor logs. Left out: none is kept. */
  readonly onLog?: (attempt: Attempt, level: TaskLogLevel, text: string) => void;
  /** Called with the usage that an executor reports, once it is counted. */
  readonly onUsage?: (attempt: Attempt, usage: Usage) => void;
  /** The context window of the model of a task's agent. Left out: unknown. */
  readonly contextWindow?: (record: TaskRecord) => number | undefined;
  /** Reads the session of an attempt's task, with its last turns. Left out: no task has a session. */
  readonly readSession?: (attempt: Attempt, turns: number) => Promise<TaskSession | null>;
  /** Takes messages in mode `steer` for the task of an attempt. Left out: there are none. */
  readonly takeMessages?: (attempt: Attempt, after: number) => Promise<readonly TakenMessage[]>;
  /** Masks secrets of a task in its errors. Left out: masks those of `llmConfig` only. */
  readonly secrets?: SecretHider;
  /** Signs a request for a task of this tenant. Left out: no secret is set. */
  readonly sign?: (tenant: string, content: SignedContent, options?: SignOptions) => string | null;
  /** What attempts may do in Rota. Left out: nothing. */
  readonly taskTokens?: TaskTokenHooks;
}

/**
 * Runs claimed tasks. The first of these events decides an attempt: its executor returns or throws, its timeout or the
 * task's deadline passes, its lease is lost, the node stops. From then on the executor has no effect on its task.
 */
export class Runner {
  readonly #options: RunnerOptions;
  readonly #secrets: SecretHider;
  readonly #hooks: AttemptHooks;
  readonly #running = new Map<number, Attempt>();
  /** Attempts that were aborted and whose executor has not returned. */
  readonly #lingering = new Set<Attempt>();
  /** Yields to other work while large results are checked, by tenant. */
  readonly #turns = new TurnBudget<string>(CHECKED_PER_TURN);
  // One timer for all attempts: most end long before their timeout, and a timer for each would cost more than the rest.
  #timer: Timer | null = null;
  #timerAt = Number.POSITIVE_INFINITY;

  constructor(options: RunnerOptions) {
    this.#options = options;
    this.#secrets = options.secrets ?? new SecretHider();
    this.#hooks = {
      memory: options.memory,
      log: options.log,
      onProgress: options.onProgress,
      onLog: (attempt, level, text) => options.onLog?.(attempt, level, text),
      hideSecrets: ({ record }, text) => this.#secrets.hide(record, text),
      hideModelSecrets: ({ record, hasGivenToken }, answer) => {
        const hidden = this.#secrets.hideModelSecrets(record, answer);
        return hasGivenToken ? hideTaskTokensIn(hidden) : hidden;
      },
      onUsage: options.onUsage ?? (() => {}),
      contextWindow: options.contextWindow ?? (() => undefined),
      readSession: options.readSession ?? (async () => null),
      takeMessages: options.takeMessages ?? (async () => []),
      sign: options.sign ?? (() => null),
      taskTokens: options.taskTokens ?? NO_TASK_TOKENS,
    };
  }

  get size(): number {
    return this.#running.size;
  }

  has(token: number): boolean {
    return this.#running.has(token);
  }

  tokens(): number[] {
    return [...this.#running.keys()];
  }

  /** The ids of up to `max` running tasks, oldest first. */
  taskIds(max: number): string[] {
    return [...this.#running.values()].slice(0, max).map(({ record }) => record.id);
  }

  run({ token, task: record, bytes }: ClaimedTask): void {
    const attempt = this.#begin(token, record);
    const executor = this.#options.findExecutor(record);
    if (executor === undefined) {
      attempt.returned();
      this.#decide(attempt, { kind: "not_executed", error: noExecutorHere(record.agent) });
      return;
    }
    attempt.hold(bytes);
    this.#watch(attempt);
    void this.#execute(attempt, executor);
  }

  /**
   * Stops attempts that lost their lease to a cancel, a pre-emption or a rescue. Returns those that ran here.
   */
  fence(tokens: readonly number[], reason: string): Attempt[] {
    const stopped: Attempt[] = [];
    for (const token of tokens) {
      const attempt = this.#running.get(token);
      if (attempt === undefined) continue;
      this.#end(attempt, reason);
      this.#options.onFenced(attempt);
      stopped.push(attempt);
    }
    return stopped;
  }

  /** Stops all attempts of a node that shuts down. Their tasks go back to the queue, or fail if they have no retry left. */
  interruptAll(error: string): void {
    for (const attempt of [...this.#running.values()]) this.#stop(attempt, { kind: "interrupted", error });
  }

  /** Cancels the timer. Does not wait for executors that have not returned. */
  close(): void {
    this.#timer?.cancel();
    this.#timer = null;
    this.#timerAt = Number.POSITIVE_INFINITY;
  }

  #begin(token: number, record: TaskRecord): Attempt {
    const begunAt = this.#options.clock.monotonic();
    const attempt = new Attempt({ token, record, begunAt, hooks: this.#hooks });
    this.#running.set(token, attempt);
    return attempt;
  }

  /** Never rejects: an unhandled rejection would end the process and all its tasks. */
  async #execute(attempt: Attempt, executor: Executor): Promise<void> {
    const made = await this.#outcomeOf(attempt, executor);
    const outcome =
      made.kind === "failed" ? { ...made, error: this.#secrets.hide(attempt.record, made.error) } : made;
    attempt.returned();
    if (attempt.over) {
      this.#returned(attempt);
      return;
    }
    try {
      this.#decide(attempt, outcome);
    } catch (error) {
      // A fault of Rota, not of the executor. On a shared storage the heartbeat's search for orphans returns the task to
      // the queue, on an exclusive one the next start does.
      this.#options.log.error(
        { error, taskId: attempt.record.id },
        "could not store the outcome of an attempt",
      );
    }
  }

  /** The executor returned after the attempt was decided. */
  #returned(attempt: Attempt): void {
    this.#lingering.delete(attempt);
  }

  #decide(attempt: Attempt, outcome: Outcome): void {
    attempt.over = true;
    this.#running.delete(attempt.token);
    this.#options.onOutcome(attempt, outcome);
  }

  #stop(attempt: Attempt, outcome: Extract<Outcome, { error: string }>): void {
    this.#end(attempt, outcome.error);
    this.#options.onOutcome(attempt, outcome);
  }

  #end(attempt: Attempt, reason: string): void {
    attempt.over = true;
    this.#running.delete(attempt.token);
    this.#lingering.add(attempt);
    const now = this.#options.clock.monotonic();
    attempt.abort(new DOMException(reason, "AbortError"), now);
    this.#wakeAt(now + IGNORED_ABORT_MS);
  }

  #watch(attempt: Attempt): void {
    const { deadline } = attempt.record;
    this.#wakeAt(attempt.timesOutAt);
    if (deadline !== null) this.#wakeAt(this.#deadlineLook(deadline));
  }

  #deadlineLook(deadline: number): number {
    const leftMs = Math.max(deadline - this.#options.storageNow(), 0);
    return this.#options.clock.monotonic() + Math.min(leftMs, DEADLINE_LOOK_MS);
  }

  #wakeAt(at: number): void {
    if (at >= this.#timerAt) return;
    this.#timer?.cancel();
    this.#timerAt = at;
    this.#timer = this.#options.clock.setTimer(Math.max(at - this.#options.clock.monotonic(), 1), this.#look);
  }

  /** Stops attempts that are past their deadline or timeout, and sets the timer for the next. */
  #look = (): void => {
    this.close();
    const now = this.#options.clock.monotonic();
    const storageNow = this.#options.storageNow();
    for (const attempt of [...this.#running.values()]) {
      const { deadline, spec } = attempt.record;
      if (deadline !== null && storageNow >= deadline) {
        this.#stop(attempt, { kind: "deadline", error: "deadline exceeded" });
      } else if (now >= attempt.timesOutAt) {
        const error = `timed out after ${spec.timeoutMs} ms`;
        this.#stop(attempt, { kind: "failed", error, permanent: false });
      } else {
        this.#watch(attempt);
      }
    }
    this.#nameThoseWhoIgnoreTheirSignal(now);
  };

  #nameThoseWhoIgnoreTheirSignal(now: number): void {
    for (const attempt of this.#lingering) {
      const at = (attempt.abortedAt ?? now) + IGNORED_ABORT_MS;
      if (now < at) {
        this.#wakeAt(at);
        continue;
      }
      this.#lingering.delete(attempt);
      attempt.log.warn({}, `still runs ${IGNORED_ABORT_MS} ms after it was aborted; its result is ignored`);
    }
  }

  async #outcomeOf(attempt: Attempt, executor: Executor): Promise<Outcome> {
    const { record } = attempt;
    try {
      if (attempt.heldBytes >= LARGE_BYTES) await this.#turnFor(attempt);
      // `await`: the check of a large result rejects if the attempt is aborted meanwhile, and must do so in here.
      if (record.spec.dependsOn === undefined) {
        return await this.#outcomeOfResult(attempt, await executor(toExecutorTask(record), attempt));
      }
      // Until the results are read, their largest possible size is counted, so that no tasks are claimed for that memory.
      const bytesMax = Math.min(record.spec.dependsOn.length * RESULT_BYTES_MAX, DEPENDENCY_BYTES_MAX);
      attempt.hold(bytesMax);
      const { results: dependencies, bytes } = await this.#options.readDependencies(record, attempt.signal);
      // Aborted before it started.
      attempt.signal.throwIfAborted();
      attempt.letGo(bytesMax - bytes);
      return await this.#outcomeOfResult(
        attempt,
        await executor({ ...toExecutorTask(record), dependencies }, attempt),
      );
    } catch (error) {
      return failureOf(error);
    }
  }

  /** An object of an attempt that holds little memory is checked at once: it is most likely small. */
  #outcomeOfResult(attempt: Attempt, result: unknown): Outcome | Promise<Outcome> {
    if (isLarge(result) || (attempt.heldBytes >= LARGE_BYTES && typeof result === "object")) {
      return this.#checkInTurns(attempt, result);
    }
    return outcomeOf(attempt, checkJson("result", result, RESULT_BYTES_MAX));
  }

  /** Waits for the attempt's turn: attempts with large input or results take turns. */
  async #turnFor(attempt: Attempt): Promise<void> {
    await this.#turns.next(attempt.tenantId);
    this.#turns.used(attempt.heldBytes);
    // Aborted in the meantime.
    if (attempt.over) attempt.signal.throwIfAborted();
  }

  /** A result can be any JSON. Serializing or parsing a megabyte takes up to 50 ms. */
  async #checkInTurns(attempt: Attempt, result: unknown): Promise<Outcome> {
    const steps = checkJsonSteps("result", result, RESULT_BYTES_MAX);
    for (;;) {
      await this.#turnFor(attempt);
      const { done, value: checked } = steps.next();
      if (done) return outcomeOf(attempt, checked);
    }
  }
}

/** A long text. How large an object is shows only when it is serialized. */
function isLarge(result: unknown): boolean {
  return typeof result === "string" && result.length >= LARGE_BYTES;
}

function outcomeOf(attempt: Attempt, checked: Checked): Outcome {
  if (checked.ok) {
    attempt.resultBytes = checked.bytes;
    const result = attempt.asStored(checked.value);
    const isText = checked.text !== undefined && result === checked.value;
    return isText ? { kind: "done", result, text: checked.text } : { kind: "done", result };
  }
  return { kind: "failed", error: cleanText(checked.error, ERROR_BYTES_MAX), permanent: true };
}
