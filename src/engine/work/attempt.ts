import { keptLog } from "../../attempts/kept-log.ts";
import { addUsage } from "../../attempts/usage-sum.ts";
import type {
  ExecutorContext,
  ReadSessionParams,
  SignedContent,
  SignOptions,
  SteeredMessage,
  TaskActions,
  TaskSession,
  Usage,
} from "../../executors/executor.ts";
import type { Log } from "../../model/log.ts";
import type { TakenMessage } from "../../model/session.ts";
import type { TaskLogLevel } from "../../model/task-log.ts";
import type { TaskRecord } from "../../model/task-record.ts";
import type { AttemptUsage } from "../../storage/storage.ts";
import type { RunningBytes } from "./running-bytes.ts";

export interface AttemptHooks {
  readonly memory: RunningBytes;
  readonly log: Log;
  /** Called with each report while the attempt lasts. */
  readonly onProgress: (attempt: Attempt, data: unknown) => void;
  /** Called with each line that the executor logs, even after the end of the attempt. */
  readonly onLog: (attempt: Attempt, level: TaskLogLevel, text: string) => void;
  /** Masks the secrets in the input of its task. */
  readonly hideSecrets: (attempt: Attempt, text: string) => string;
  /** Masks the secrets of its `llmConfig` in its result and progress. */
  readonly hideModelSecrets: (attempt: Attempt, answer: unknown) => unknown;
  /** Called with the usage that the executor reports, once it is counted. */
  readonly onUsage: (attempt: Attempt, usage: Usage) => void;
  /** The context window of the model of its agent; undefined: the agent does not name one. */
  readonly contextWindow: (record: TaskRecord) => number | undefined;
  readonly readSession: (attempt: Attempt, turns: number) => Promise<TaskSession | null>;
  /** Takes messages for its task, those after a position. */
  readonly takeMessages: (attempt: Attempt, after: number) => Promise<readonly TakenMessage[]>;
  /** Signs a request for a task of this tenant; null: no secret is set. */
  readonly sign: (tenant: string, content: SignedContent, options?: SignOptions) => string | null;
  readonly taskTokens: TaskTokenHooks;
}

export interface TaskTokenHooks {
  /** `fence`: the fencing token of the attempt. */
  readonly sign: (record: TaskRecord, fence: number) => string;
  /** Whether `http` executors get the token. */
  readonly isSent: (record: TaskRecord) => boolean;
  readonly actionsOf: (record: TaskRecord) => TaskActions;
}

/** For an engine whose attempts cannot submit, schedule or say anything. */
export const NO_TASK_TOKENS: TaskTokenHooks = {
  sign: () => "",
  isSent: () => false,
  actionsOf: () => {
    throw new Error("This engine has no `taskTokens`: its attempts cannot submit, schedule or say anything.");
  },
};

/**
 * One execution of a task in this process, and the context of its executor. At twenty thousand tasks a second most executors
 * use none of it, so the signal, the log and the functions are created when they are first read.
 */
export class Attempt implements ExecutorContext {
  readonly token: number;
  readonly record: TaskRecord;
  /** By the monotonic clock. */
  readonly begunAt: number;
  /** By the monotonic clock; Infinity: no timeout. */
  readonly timesOutAt: number;
  /** Whether the outcome is decided. From then on nothing that the executor does has an effect. */
  over = false;
  /** When it was aborted, by the monotonic clock; null: it was not. */
  abortedAt: number | null = null;
  /** What it cost so far; null: its executor has not reported it. */
  used: AttemptUsage | null = null;
  /** About how many bytes its result takes in memory, once there is one. */
  resultBytes = 0;

  #heldBytes = 0;
  /** The position of the last message that its executor got. */
  #seenPosition = 0;
  #returned = false;
  readonly #hooks: AttemptHooks;
  #controller: AbortController | null = null;
  #abortReason: Error | null = null;
  #log: Log | null = null;
  #nodeLog: Log | null = null;
  #progress: ((data: unknown) => void) | null = null;
  #usage: ((usage: Usage) => void) | null = null;
  #holds: ((bytes: number) => void) | null = null;
  #taskToken: string | null = null;

  constructor(params: { token: number; record: TaskRecord; begunAt: number; hooks: AttemptHooks }) {
    const { timeoutMs } = params.record.spec;
    this.token = params.token;
    this.record = params.record;
    this.begunAt = params.begunAt;
    this.timesOutAt = timeoutMs === null ? Number.POSITIVE_INFINITY : params.begunAt + timeoutMs;
    this.#hooks = params.hooks;
  }

  /** About how many bytes it holds in memory until its executor returns. */
  get heldBytes(): number {
    return this.#heldBytes;
  }

  get tenantId(): string {
    return this.record.tenant;
  }

  get number(): number {
    return this.record.attempts.at(-1)?.number ?? 1;
  }

  get signal(): AbortSignal {
    if (this.#controller === null) {
      this.#controller = new AbortController();
      if (this.#abortReason !== null) this.#controller.abort(this.#abortReason);
    }
    return this.#controller.signal;
  }

  /** The log of the executor. Its lines are also stored with the task. */
  get log(): Log {
    this.#log ??= keptLog(this.nodeLog, {
      keep: (level, text) => this.#hooks.onLog(this, level, text),
      hide: (text) => this.#hooks.hideSecrets(this, text),
    });
    return this.#log;
  }

  /** The node's own messages about the attempt. They are not stored with the task. */
  get nodeLog(): Log {
    const { requestId } = this.record.spec;
    this.#nodeLog ??= this.#hooks.log.child({
      taskId: this.record.id,
      agentId: this.record.agent,
      attempt: this.number,
      ...(requestId === undefined ? {} : { requestId }),
    });
    return this.#nodeLog;
  }

  /** Its result or progress with the secrets masked, as it may be stored. */
  asStored(answer: unknown): unknown {
    return this.#hooks.hideModelSecrets(this, answer);
  }

  get progress(): (data: unknown) => void {
    this.#progress ??= (data) => {
      if (!this.over) this.#hooks.onProgress(this, data);
    };
    return this.#progress;
  }

  get usage(): (usage: Usage) => void {
    this.#usage ??= (usage) => {
      if (!this.over) this.#addUsage(usage);
    };
    return this.#usage;
  }

  get holds(): (bytes: number) => void {
    this.#holds ??= (bytes) => this.hold(bytes);
    return this.#holds;
  }

  get contextWindow(): number | undefined {
    return this.#hooks.contextWindow(this.record);
  }

  get session(): (params?: ReadSessionParams) => Promise<TaskSession | null> {
    return ({ turns = 0 } = {}) => this.#hooks.readSession(this, turns);
  }

  get messages(): () => Promise<readonly SteeredMessage[]> {
    return async () => {
      const taken = await this.#hooks.takeMessages(this, this.#seenPosition);
      // A call that ran at the same time may have returned some of them.
      const fresh = taken.filter(({ position }) => position > this.#seenPosition);
      this.#seenPosition = fresh.at(-1)?.position ?? this.#seenPosition;
      return fresh.map(({ taskId, message }) => ({ taskId, message }));
    };
  }

  get sign(): ExecutorContext["sign"] {
    return (content, options) => this.#hooks.sign(this.record.tenant, content, options);
  }

  get taskToken(): string {
    this.#taskToken ??= this.#hooks.taskTokens.sign(this.record, this.token);
    return this.#taskToken;
  }

  /** Whether its executor has its token, and may repeat it. */
  get hasGivenToken(): boolean {
    return this.#taskToken !== null;
  }

  get sendsTaskToken(): boolean {
    return this.#hooks.taskTokens.isSent(this.record);
  }

  get submit(): TaskActions["submit"] {
    return async (input) => this.#actions().submit(input);
  }

  get schedule(): TaskActions["schedule"] {
    return async (input) => this.#actions().schedule(input);
  }

  get say(): TaskActions["say"] {
    return async (sessionKey, input) => this.#actions().say(sessionKey, input);
  }

  /** Throws once the attempt is over: what it makes would belong to a task that another attempt runs. */
  #actions(): TaskActions {
    if (this.over)
      throw new DOMException(
        "the attempt is over: it can no longer submit, schedule or say anything",
        "AbortError",
      );
    return this.#hooks.taskTokens.actionsOf(this.record);
  }

  /**
   * Aborts the executor. An error thrown by one of its abort listeners does not come back through this call: Node raises it as
   * an uncaught exception, as for every event target. Catching it would mean replacing the methods of every signal, which would
   * then no longer be the platform's. docs/embedding.md describes this instead.
   */
  abort(reason: Error, at: number): void {
    this.abortedAt = at;
    this.#abortReason = reason;
    this.#controller?.abort(reason);
  }

  /** Counts bytes that it holds until its executor returns. */
  hold(bytes: number): void {
    if (this.#returned || !Number.isFinite(bytes) || bytes <= 0) return;
    // Whole bytes, so that sums return to exactly 0.
    const whole = Math.ceil(bytes);
    this.#heldBytes += whole;
    this.#hooks.memory.hold(this.record.tenant, whole);
  }

  /** Subtracts bytes that were counted. */
  letGo(bytes: number): void {
    if (this.#returned) return;
    this.#heldBytes -= bytes;
    this.#hooks.memory.release(this.record.tenant, bytes);
  }

  /** Its executor has returned. From then on nothing is counted. */
  returned(): void {
    this.#returned = true;
    this.#hooks.memory.release(this.record.tenant, this.#heldBytes);
    this.#heldBytes = 0;
  }

  #addUsage(usage: Usage): void {
    const added = addUsage(this.used, usage, this.contextWindow);
    if (added.ok) {
      this.used = added.sum;
      this.#hooks.onUsage(this, usage);
    } else {
      this.log.warn({}, `${added.error}; nothing of this report is counted`);
    }
  }
}
