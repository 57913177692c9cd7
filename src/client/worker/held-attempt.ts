import { keptLog } from "../../attempts/kept-log.ts";
import { addUsage, type UsageSum } from "../../attempts/usage-sum.ts";
import type {
  ExecutorContext,
  ReadSessionParams,
  SteeredMessage,
  TaskActions,
  TaskSession,
  Usage,
} from "../../executors/executor.ts";
import { PROGRESS_BYTES_MAX } from "../../executors/executor.ts";
import type { ClaimedAttempt, HeartbeatInput } from "../../interface/workers.ts";
import type { Clock, Timer } from "../../model/clock.ts";
import type { Log } from "../../model/log.ts";
import type { TakenMessage } from "../../model/session.ts";
import type { Task } from "../../model/task.ts";
import type { TaskLogLevel } from "../../model/task-log.ts";
import { utf8Length } from "../../model/text/utf8-length.ts";

/** How many log lines wait for the next heartbeat, and how long one may be. Older lines are dropped. */
const LINES_MAX = 1_000;
const LINE_LENGTH_MAX = 4_000;

const OVER = "the attempt is over: it gets no more messages";

/** What a heartbeat says of one attempt. */
export type AttemptReport = HeartbeatInput["attempts"][number];

/** What an attempt has used, as the schema of a report takes it. */
type UsageReport = UsageSum & Readonly<Record<string, unknown>>;

/** As in a report: `at` is RFC 3339 by the clock of the worker, for readers only. */
interface LogLine {
  readonly at: string;
  readonly level: TaskLogLevel;
  readonly text: string;
}

export interface HeldAttemptHooks {
  readonly clock: Clock;
  readonly log: Log;
  /** There is something new for the next heartbeat. */
  readonly onNews: () => void;
  /** What a handler makes with the token of its attempt. */
  readonly actionsOf: (taskToken: string) => TaskActions;
  /** Reads the session of the task. */
  readonly readSession: (attempt: HeldAttempt, turns: number) => Promise<TaskSession | null>;
}

/** One attempt that this worker runs, and the context of its handler. */
export class HeldAttempt implements ExecutorContext {
  readonly token: string;
  readonly number: number;
  readonly task: Task;
  readonly tenantId: string;
  readonly taskToken: string;
  readonly contextWindow: number | undefined;
  /** Whether its outcome is decided: nothing that the handler does has an effect any more. */
  over = false;
  /** Whether a heartbeat has named it. */
  named = false;
  /** By the monotonic clock. */
  readonly begunAt: number;
  readonly #hooks: HeldAttemptHooks;
  /** Null until its signal is asked for. */
  #controller: AbortController | null = null;
  #log: Log | null = null;
  #timers: Timer[] = [];
  #progress: { readonly data: unknown } | null = null;
  #lines: LogLine[] = [];
  #used: UsageReport | null = null;
  #usedIsNew = false;
  /** Its handler waits for messages. */
  #asked: PromiseWithResolvers<readonly SteeredMessage[]> | null = null;
  #seenPosition = 0;

  constructor(claimed: ClaimedAttempt, hooks: HeldAttemptHooks) {
    this.token = claimed.attemptToken;
    this.number = claimed.number;
    this.task = claimed.task;
    this.tenantId = claimed.tenantId;
    this.taskToken = claimed.taskToken;
    this.contextWindow = claimed.contextWindow;
    this.#hooks = hooks;
    this.begunAt = hooks.clock.monotonic();
  }

  get log(): Log {
    const { log, clock } = this.#hooks;
    const { taskId, agentId } = this.task;
    this.#log ??= keptLog(log.child({ taskId, agentId, attempt: this.number }), {
      keep: (level, text) => this.#keep({ at: new Date(clock.now()).toISOString(), level, text }),
      hide: (text) => text,
    });
    return this.#log;
  }

  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    return this.#controller.signal;
  }

  /** What was used so far; undefined: nothing was reported. */
  get used(): UsageReport | undefined {
    return this.#used ?? undefined;
  }

  get hasLines(): boolean {
    return this.#lines.length > 0;
  }

  get hasNews(): boolean {
    return this.hasLines || this.#progress !== null || this.#usedIsNew || this.#asked !== null;
  }

  readonly progress = (data: unknown): void => {
    if (this.over) return;
    const text = jsonText(data);
    if (text === undefined || utf8Length(text) > PROGRESS_BYTES_MAX) {
      this.log.warn(
        {},
        `progress must be JSON of at most ${PROGRESS_BYTES_MAX} bytes; this report is dropped`,
      );
      return;
    }
    this.#progress = { data: JSON.parse(text) };
    this.#hooks.onNews();
  };

  readonly usage = (usage: Usage): void => {
    if (this.over) return;
    const added = addUsage(this.#used, usage, this.contextWindow);
    if (!added.ok) {
      this.log.warn({}, `${added.error}; nothing of this report is counted`);
      return;
    }
    this.#used = { ...added.sum };
    this.#usedIsNew = true;
    this.#hooks.onNews();
  };

  /** The memory of a worker is its own affair. */
  readonly holds = (): void => {};

  readonly session = async ({ turns = 0 }: ReadSessionParams = {}): Promise<TaskSession | null> =>
    this.task.sessionKey === undefined ? null : this.#hooks.readSession(this, turns);

  /** Executors of workers are functions. */
  readonly sendsTaskToken = false;

  readonly submit: TaskActions["submit"] = async (input) => this.#actions().submit(input);
  readonly schedule: TaskActions["schedule"] = async (input) => this.#actions().schedule(input);
  readonly say: TaskActions["say"] = async (sessionKey, input) => this.#actions().say(sessionKey, input);
  /** The next heartbeat asks for them. */
  readonly messages = async (): Promise<readonly SteeredMessage[]> => {
    this.signal.throwIfAborted();
    if (this.task.sessionKey === undefined) return [];
    if (this.over) throw new Error(OVER);
    this.#asked ??= Promise.withResolvers();
    // A handler that does not wait for it need not handle its rejection.
    this.#asked.promise.catch(() => {});
    this.#hooks.onNews();
    return this.#asked.promise;
  };

  /** The server responded to a heartbeat that asked for messages. */
  took(messages: readonly TakenMessage[]): void {
    this.#seenPosition = messages.at(-1)?.position ?? this.#seenPosition;
    this.#asked?.resolve(messages.map(({ taskId, message }) => ({ taskId, message })));
    this.#asked = null;
  }

  /** The secrets of webhooks stay with Rota. */
  readonly sign = (): null => null;

  /** Calls `callback` after this time, unless the attempt is over before. */
  limit(ms: number | null | undefined, callback: () => void): void {
    if (ms != null) this.#timers.push(this.#hooks.clock.setTimer(ms, callback));
  }

  /** Its outcome is decided. */
  end(): void {
    this.over = true;
    for (const timer of this.#timers) timer.cancel();
    this.#timers = [];
    this.#asked?.reject(new Error(OVER));
    this.#asked = null;
  }

  /** Ends it and aborts its handler. */
  abort(reason: string): void {
    this.end();
    this.#controller ??= new AbortController();
    this.#controller.abort(new DOMException(reason, "AbortError"));
  }

  /** What the next heartbeat says of it, with log lines of at most about this many bytes. What does not fit stays for the next. */
  heartbeat(bytesMax: number): { readonly report: AttemptReport; readonly bytes: number } {
    const progress = this.#progress;
    let bytes = progress === null ? 0 : (jsonText(progress.data)?.length ?? 0) * 3;
    const log: LogLine[] = [];
    for (const line of this.#lines) {
      const lineBytes = line.text.length * 3 + 100;
      if (bytes + lineBytes > bytesMax) break;
      log.push(line);
      bytes += lineBytes;
    }
    const report = {
      ...this.namedOnly(),
      ...(progress === null ? {} : { progress: progress.data }),
      ...(this.#used === null || !this.#usedIsNew ? {} : { usage: this.#used }),
      ...(log.length === 0 ? {} : { log }),
    };
    return { report, bytes };
  }

  /** The least that a heartbeat says of it. */
  namedOnly(): AttemptReport {
    return {
      attemptToken: this.token,
      ...(this.#asked === null ? {} : { messagesAfter: this.#seenPosition }),
    };
  }

  /** A heartbeat arrived. What was reported meanwhile stays for the next. */
  sent({ progress, usage, log = [] }: AttemptReport): void {
    this.named = true;
    if (progress !== undefined && this.#progress?.data === progress) this.#progress = null;
    if (usage !== undefined && this.#used === usage) this.#usedIsNew = false;
    const arrived = new Set<unknown>(log);
    this.#lines = this.#lines.filter((line) => !arrived.has(line));
  }

  #actions(): TaskActions {
    if (this.over)
      throw new DOMException(
        "the attempt is over: it can no longer submit, schedule or say anything",
        "AbortError",
      );
    return this.#hooks.actionsOf(this.taskToken);
  }

  #keep(line: LogLine): void {
    if (this.over) return;
    this.#lines.push({ ...line, text: line.text.slice(0, LINE_LENGTH_MAX).toWellFormed() });
    if (this.#lines.length > LINES_MAX) this.#lines.shift();
    this.#hooks.onNews();
  }
}

/** Undefined if it is not JSON. */
export function jsonText(value: unknown): string | undefined {
  try {
    return JSON.stringify(value ?? null);
  } catch {
    return undefined;
  }
}
