import type { HeartbeatAnswer } from "../../interface/workers.ts";
import type { Clock, Timer } from "../../model/clock.ts";
import type { Log } from "../../model/log.ts";
import type { AttemptReport, HeldAttempt } from "./held-attempt.ts";
import { Backoff, type WorkerCalls } from "./worker-calls.ts";

/** Progress, log lines and new attempts are reported at most this often, and sooner than the interval of heartbeats. */
const NEWS_MS = 1_000;
/** Progress and log lines of one heartbeat. The server accepts 64 KiB. */
const NEWS_BYTES_MAX = 60_000;
/** How many heartbeats one attempt may need for its last log lines: 256 KiB are stored with a task. */
const FLUSHES_MAX = 6;
/** Until the server has said how often. */
const DEFAULT_HEARTBEAT_MS = 5_000;

export interface HeartbeatsOptions {
  readonly calls: WorkerCalls;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
  /** The attempts whose outcome is not recorded yet. */
  readonly attempts: () => readonly HeldAttempt[];
  /** The server no longer counts this attempt for the worker. */
  readonly onCancel: (attempt: HeldAttempt, reason: string) => void;
  readonly onDrain: () => void;
}

/** Sends heartbeats while there are attempts, whatever their handlers do. */
export class Heartbeats {
  readonly #options: HeartbeatsOptions;
  readonly #backoff: Backoff;
  #timer: Timer | null = null;
  #timerAt = Number.POSITIVE_INFINITY;
  #sentAt = Number.NEGATIVE_INFINITY;
  #sending: Promise<boolean> | null = null;
  #notBefore = 0;

  constructor(options: HeartbeatsOptions) {
    this.#options = options;
    this.#backoff = new Backoff(options.random, { maxMs: 2_000 });
  }

  /** There is a new attempt: sets the timer, unless one fires soon enough. Many attempts may begin at once. */
  began({ begunAt }: HeldAttempt): void {
    if (this.#timerAt > begunAt + this.#newsMs) this.wake();
  }

  /** There is an attempt or something to report: sets the timer. */
  wake = (): void => {
    const { clock, attempts } = this.#options;
    if (this.#sending !== null) return;
    const held = attempts();
    if (held.length === 0) {
      this.#cancelTimer();
      return;
    }
    const now = clock.monotonic();
    const at = this.#dueAt(held);
    if (at >= this.#timerAt) return;
    this.#cancelTimer();
    this.#timerAt = at;
    this.#timer = clock.setTimer(Math.max(at - now, 0), () => {
      this.#cancelTimer();
      // The attempts that it was for may have ended: short tasks need no heartbeat of their own.
      if (this.#dueAt(attempts()) <= clock.monotonic()) void this.#sendOne(null);
      else this.wake();
    });
  };

  get #heartbeatMs(): number {
    return this.#options.calls.registration?.heartbeatMs ?? DEFAULT_HEARTBEAT_MS;
  }

  get #newsMs(): number {
    return Math.min(NEWS_MS, this.#heartbeatMs);
  }

  /** When the next heartbeat is due, by the monotonic clock. */
  #dueAt(held: readonly HeldAttempt[]): number {
    const heartbeatMs = this.#heartbeatMs;
    const newsMs = this.#newsMs;
    const dueAt = held.map(({ hasNews, named, begunAt }) => {
      const sentAt = this.#sentAt === Number.NEGATIVE_INFINITY ? begunAt : this.#sentAt;
      const nameAt = named ? sentAt + heartbeatMs : begunAt + newsMs;
      return hasNews ? Math.min(nameAt, sentAt + newsMs) : nameAt;
    });
    return Math.max(Math.min(...dueAt), this.#notBefore);
  }

  /**
   * Sends the log lines that an attempt still has, since its end cannot carry them. Gives up if the server cannot be reached, or
   * if there are more lines than are stored with a task.
   */
  async flush(attempt: HeldAttempt): Promise<void> {
    for (let left = FLUSHES_MAX; left > 0 && attempt.hasLines && !attempt.over; left--) {
      // One that is on its way may have been made before the last line.
      if (this.#sending !== null) await this.#sending;
      if (!(await this.#sendOne(attempt))) return;
    }
  }

  /** Whether it arrived. What does not fit into one heartbeat waits, of `first` last. */
  #sendOne(first: HeldAttempt | null): Promise<boolean> {
    this.#sending ??= this.#send(first).finally(() => {
      this.#sending = null;
      this.wake();
    });
    return this.#sending;
  }

  stop(): void {
    this.#cancelTimer();
  }

  async #send(first: HeldAttempt | null): Promise<boolean> {
    const { calls, clock, log, attempts } = this.#options;
    const inOrder = first === null ? attempts() : [first, ...attempts()];
    const held = new Map(inOrder.map((attempt) => [attempt.token, attempt]));
    if (held.size === 0) return true;
    const reports = reportsOf([...held.values()]);
    this.#sentAt = clock.monotonic();
    const timeoutMs = Math.max((calls.registration?.leaseMs ?? 15_000) / 3, 1_000);
    const tried = await calls.try<HeartbeatAnswer>("heartbeat", { body: { attempts: reports }, timeoutMs });
    if (!tried.ok) {
      this.#notBefore = clock.monotonic() + this.#backoff.pauseMs(tried.retryAfterMs);
      this.#sentAt = Math.min(this.#sentAt, this.#notBefore - NEWS_MS);
      if (tried.passing) {
        log.warn({ error: tried.error }, "a heartbeat failed; the worker sends it again");
        return false;
      }
      // The attempts must be named in any case, so what the server refuses is not sent again.
      for (const report of reports) held.get(report.attemptToken)?.sent(report);
      log.error({ error: tried.error }, "Rota refuses a heartbeat: its progress and log lines are dropped");
      return false;
    }
    this.#backoff.reset();
    this.#notBefore = 0;
    for (const report of reports) held.get(report.attemptToken)?.sent(report);
    const asked = new Set(
      reports.flatMap((report) => (report.messagesAfter === undefined ? [] : report.attemptToken)),
    );
    for (const { attemptToken, ok, cancel, messages = [] } of tried.answer.attempts) {
      const attempt = held.get(attemptToken);
      if (ok && asked.has(attemptToken)) attempt?.took(messages);
      if (attempt !== undefined && !attempt.over && (!ok || cancel !== undefined)) {
        this.#options.onCancel(attempt, cancel ?? "unknown");
      }
    }
    if (tried.answer.drain === true) this.#options.onDrain();
    return true;
  }

  #cancelTimer(): void {
    this.#timer?.cancel();
    this.#timer = null;
    this.#timerAt = Number.POSITIVE_INFINITY;
  }
}

/** Every attempt is named, though not everything it has to report may fit. */
function reportsOf(held: readonly HeldAttempt[]): AttemptReport[] {
  let left = NEWS_BYTES_MAX;
  return held.map((attempt) => {
    const { report, bytes } = attempt.heartbeat(left);
    if (bytes > left) return attempt.namedOnly();
    left -= bytes;
    return report;
  });
}
