import { failureOf } from "../../attempts/attempt-error.ts";
import { pause } from "../../clock/pause.ts";
import type { Executor, ExecutorContext } from "../../executors/executor.ts";
import type { ClaimAnswer, ClaimedAttempt, ClaimInput } from "../../interface/workers.ts";
import { DEPENDENCY_BYTES_MAX, type DependencyResult } from "../../model/task.ts";
import { RETRY_AFTER_MS_MAX } from "../../model/worker.ts";
import { Connection } from "../connection.ts";
import { attemptActions } from "./attempt-actions.ts";
import { type AttemptEnd, type CarriedEnds, Finisher } from "./finisher.ts";
import { Heartbeats } from "./heartbeats.ts";
import { HeldAttempt, jsonText } from "./held-attempt.ts";
import { Signals } from "./signals.ts";
import { Backoff, type Tried, WorkerCalls } from "./worker-calls.ts";
import { checkWorkerOptions, type RotaWorkerOptions, type WorkerSettings } from "./worker-options.ts";

/**
 * How long a claim takes at most, and of that its answer once the server no longer holds it, as shares of the lease. If the answer
 * gets lost on a connection that stays open, the claim is repeated while the server still keeps its attempts for this worker.
 */
const CLAIM_SHARE = { all: 0.9, answer: 0.15, answerMaxMs: 5_000 } as const;
/** A server that answers an empty claim at once, without `retryInMs`, is not asked again before this. */
const EMPTY_CLAIM_MS = 1_000;
/** A handler that ignores its signal for so long is logged. */
const IGNORED_ABORT_MS = 5_000;
/** How long a stop waits for the server to record the last outcomes. */
const LAST_FINISH_MS = 10_000;
/** At least how many ended attempts are remembered, so that a repeated claim does not start one again. */
const ENDED_KEPT = 1_000;
/** What an outcome takes besides its result or error, about. */
const OUTCOME_LENGTH = 300;

/** How an attempt ended, without which it was. */
type Outcome = Omit<AttemptEnd, "attemptToken">;

/**
 * Runs tasks of a Rota server in this process: it asks for tasks, calls the handler of their agent, and reports how they ended.
 * Handlers are the functions that `rota.agent(…)` takes.
 *
 * @example
 * const worker = new RotaWorker({
 *   url: "http://127.0.0.1:7682",
 *   agents: { shout: async (task) => task.message?.toUpperCase() },
 *   slots: 4,
 * });
 * process.once("SIGTERM", () => worker.stop());
 * await worker.run();
 */
export class RotaWorker {
  readonly #settings: WorkerSettings;
  readonly #calls: WorkerCalls;
  readonly #heartbeats: Heartbeats;
  readonly #signals: Signals;
  readonly #finisher: Finisher;
  /** Attempts whose handler runs or whose outcome is not recorded: each takes a slot. */
  readonly #held = new Map<string, HeldAttempt>();
  /** Attempts whose outcome is on its way to the server. */
  readonly #finishing = new Set<string>();
  /** Attempts whose handler has returned. */
  readonly #returned = new Set<string>();
  #ended = new Set<string>();
  /** Those that ended before all of `#ended`. */
  #endedBefore = new Set<string>();
  readonly #claims = new AbortController();
  /** Called when a slot becomes free, or is about to with the outcomes that the next claim carries. */
  #onFree: (() => void) | null = null;
  /** Outcomes that the next claim carries, or the one that is under way. */
  #carried: CarriedEnds | null = null;
  #started: Promise<void> | null = null;
  #stopping: Promise<void> | null = null;
  #failure: { readonly error: unknown } | null = null;
  readonly #over = Promise.withResolvers<void>();

  constructor(options: RotaWorkerOptions) {
    this.#settings = checkWorkerOptions(options);
    // Programs that call `start` need not wait for the end. The failure is logged.
    this.#over.promise.catch(() => undefined);
    const { clock, random, log } = this.#settings.client;
    const connection = new Connection(this.#settings.client);
    this.#calls = new WorkerCalls(connection, this.#settings);
    const shared = { calls: this.#calls, clock, random, log };
    this.#finisher = new Finisher({
      ...shared,
      onAnswered: (token) => this.#forget(token),
      carry: (carried) => this.#carry(carried),
    });
    this.#heartbeats = new Heartbeats({
      ...shared,
      attempts: () => [...this.#held.values()].filter(({ over, token }) => !over || this.#isFinishing(token)),
      onCancel: (attempt, reason) => this.#cancel(attempt, reason),
      onDrain: () => void this.stop(),
    });
    this.#signals = new Signals({
      ...shared,
      connection,
      onCancel: (ended, reason) => this.#cancelled(ended, reason),
      onDrain: () => void this.stop(),
    });
  }

  /** The id that the server gave this worker. Null before the first registration. */
  get workerId(): string | null {
    return this.#calls.registration?.workerId ?? null;
  }

  /** The number of tasks that it runs. */
  get running(): number {
    return this.#held.size;
  }

  /** Registers, and begins to ask for tasks. Rejects if the server refuses this worker. While the server is away, it waits. */
  start(): Promise<void> {
    this.#started ??= this.#start();
    return this.#started;
  }

  /**
   * Runs until `stop()` is called, the signal fires or an operator drains the worker. Rejects if the server refuses this worker,
   * also later on, as when its key was deleted.
   */
  async run({ signal }: { readonly signal?: AbortSignal } = {}): Promise<void> {
    const stop = () => void this.stop();
    signal?.addEventListener("abort", stop, { once: true });
    try {
      if (signal?.aborted) return await this.stop();
      await this.start();
      await this.#over.promise;
    } finally {
      signal?.removeEventListener("abort", stop);
    }
  }

  /**
   * Asks for no more tasks, waits until the running handlers have ended, and unregisters. After `graceMs` the handlers are
   * aborted, and their tasks go back to the queue.
   */
  stop({ graceMs = this.#settings.graceMs }: { readonly graceMs?: number } = {}): Promise<void> {
    this.#stopping ??= this.#stop(graceMs);
    return this.#stopping;
  }

  async #start(): Promise<void> {
    const { clock, random, log } = this.#settings.client;
    const backoff = new Backoff(random);
    for (;;) {
      const tried = await this.#calls.register();
      if (this.#stopping !== null) return;
      if (tried.ok) break;
      if (!tried.passing) throw tried.error;
      log.warn({ error: tried.error }, "cannot register; the worker tries again");
      await pause(clock, backoff.pauseMs(tried.retryAfterMs), this.#claims.signal).catch(() => undefined);
    }
    void this.#claimLoop();
    void this.#signals.run();
  }

  async #claimLoop(): Promise<void> {
    const { clock, random, log } = this.#settings.client;
    const { signal } = this.#claims;
    const backoff = new Backoff(random);
    try {
      for (let claimId = crypto.randomUUID(); ; ) {
        await this.#freeSlot();
        const began = clock.monotonic();
        const finishes = this.#carried?.ends ?? [];
        const tried = await this.#claim(claimId, finishes);
        if (!tried.ok) {
          this.#answerCarried(null);
          // What the server refuses may be one of the outcomes, which are now sent by themselves.
          if (!tried.passing && finishes.length === 0) throw tried.error;
          log.warn({ error: tried.error }, "a claim failed; the worker repeats it");
          // With the same id: the server may have assigned attempts in a response that was lost.
          await pause(clock, backoff.pauseMs(tried.retryAfterMs), signal);
          continue;
        }
        backoff.reset();
        claimId = crypto.randomUUID();
        const { attempts, drain, retryInMs, finished } = tried.answer;
        this.#answerCarried(finished ?? null);
        for (const attempt of attempts) this.#begin(attempt);
        // With `retryInMs` it is the server that drains: another one takes over.
        if (drain === true && retryInMs === undefined) return void this.stop();
        // A claim that carries outcomes does not wait for tasks: the next one does.
        const isEarly = finishes.length === 0 && clock.monotonic() - began < EMPTY_CLAIM_MS;
        const early = isEarly ? EMPTY_CLAIM_MS : 0;
        const pauseMs = retryInMs ?? (attempts.length === 0 ? early : 0);
        if (pauseMs > 0) await pause(clock, backoff.asked(pauseMs), signal);
      }
    } catch (error) {
      this.#answerCarried(null);
      if (signal.aborted) return;
      log.error({ error }, "the server refuses this worker; it stops");
      this.#failure = { error };
      void this.stop();
    }
  }

  #claim(claimId: string, finishes: readonly AttemptEnd[]) {
    const { maxWaitS = 0, leaseMs = 0 } = this.#calls.registration ?? {};
    const answerMs = Math.min(leaseMs * CLAIM_SHARE.answer, CLAIM_SHARE.answerMaxMs);
    const withinLeaseS = Math.floor((leaseMs * CLAIM_SHARE.all - answerMs) / 1_000);
    const waitS = finishes.length > 0 ? 0 : Math.min(maxWaitS, Math.max(withinLeaseS, 1));
    const free = this.#settings.slots - this.#held.size + finishes.length;
    const body: ClaimInput = { claimId, max: free, waitS, ...(finishes.length > 0 && { finishes }) };
    const timeoutMs = waitS * 1_000 + answerMs;
    return this.#calls.try<ClaimAnswer>("claim", { body, timeoutMs, signal: this.#claims.signal });
  }

  async #freeSlot(): Promise<void> {
    while (this.#held.size >= this.#settings.slots && this.#carried === null) {
      this.#claims.signal.throwIfAborted();
      await new Promise<void>((resolve) => {
        this.#onFree = resolve;
      });
    }
    this.#claims.signal.throwIfAborted();
  }

  /** While all slots are taken, the next claim carries outcomes: one request ends tasks and gets the next ones. */
  #carry(carried: CarriedEnds): boolean {
    const { finishesPerClaim = 0 } = this.#calls.registration ?? {};
    const isFull = this.#onFree !== null && this.#held.size >= this.#settings.slots;
    if (!isFull || this.#claims.signal.aborted || carried.ends.length > finishesPerClaim) return false;
    // Of a handler that ignores its signal the outcome is known, but the slot stays taken.
    if (!carried.ends.every(({ attemptToken }) => this.#returned.has(attemptToken))) return false;
    this.#carried = carried;
    this.#wakeClaims();
    return true;
  }

  #answerCarried(answers: Parameters<CarriedEnds["onAnswer"]>[0]): void {
    const carried = this.#carried;
    this.#carried = null;
    carried?.onAnswer(answers);
  }

  #wakeClaims(): void {
    this.#onFree?.();
    this.#onFree = null;
  }

  #begin(claimed: ClaimedAttempt): void {
    const { attemptToken, timeoutMs, deadlineInMs } = claimed;
    // The answer to a repeated claim names attempts that are already running.
    if (this.#held.has(attemptToken) || this.#hasEnded(attemptToken)) return;
    const { clock, log } = this.#settings.client;
    const attempt = new HeldAttempt(claimed, {
      clock,
      log,
      onNews: this.#heartbeats.wake,
      readSession: (each, turns) => this.#readSession(each, turns),
      actionsOf: (taskToken) => attemptActions(this.#settings.client, taskToken),
    });
    this.#held.set(attempt.token, attempt);
    // The server ends it, too: this is for the time in which the server cannot be reached.
    const timedOut = `timed out after ${attempt.task.timeout ?? timeoutMs} ms`;
    attempt.limit(timeoutMs, () => this.#expire(attempt, timedOut, true));
    attempt.limit(deadlineInMs, () => this.#expire(attempt, "deadline exceeded", false));
    this.#heartbeats.began(attempt);
    void this.#execute(attempt);
  }

  /** Never rejects. */
  async #execute(attempt: HeldAttempt): Promise<void> {
    const { token } = attempt;
    const { outcome, length } = await this.#outcomeOf(attempt);
    if (attempt.hasLines) await this.#heartbeats.flush(attempt);
    if (!attempt.over) this.#finish(attempt, outcome, length);
    this.#returned.add(token);
    if (!this.#isFinishing(token)) this.#free(token);
  }

  /** With about how many characters it takes. */
  async #outcomeOf(attempt: HeldAttempt): Promise<{ readonly outcome: Outcome; readonly length: number }> {
    try {
      const handler = this.#settings.handlerOf(attempt.task.agentId);
      if (handler === undefined) return { outcome: { outcome: "released" }, length: 0 };
      const result = await this.#call(handler, attempt);
      const text = jsonText(result);
      if (text === undefined) throw new Error("result is not JSON");
      return { outcome: { outcome: "done", result: JSON.parse(text) }, length: text.length };
    } catch (thrown) {
      const failure = failureOf(thrown);
      if (failure.kind !== "failed") return { outcome: { outcome: "released" }, length: 0 };
      const { error, permanent, retryAfterMs } = failure;
      const outcome = {
        outcome: "failed",
        error,
        retryable: !permanent,
        // As the server accepts it.
        ...(retryAfterMs === undefined
          ? {}
          : { retryAfterMs: Math.ceil(Math.min(retryAfterMs, RETRY_AFTER_MS_MAX)) }),
      } as const;
      return { outcome, length: error.length };
    }
  }

  async #call(handler: Executor, attempt: HeldAttempt): Promise<unknown> {
    const { task } = attempt;
    if (task.dependencies?.some((dependency) => "omitted" in dependency) !== true) {
      return handler(task, attempt);
    }
    return handler({ ...task, dependencies: await this.#dependencies(attempt) }, attempt);
  }

  async #readSession({ token, signal }: HeldAttempt, turns: number): ReturnType<ExecutorContext["session"]> {
    const { session } = await this.#patiently(signal, () => this.#calls.session(token, turns, signal));
    return session;
  }

  /** Repeats a read for a handler until the server carries it out or refuses it. Rejects with the reason of the signal, too. */
  async #patiently<Answer>(signal: AbortSignal, read: () => Promise<Tried<Answer>>): Promise<Answer> {
    const { clock, random } = this.#settings.client;
    const backoff = new Backoff(random);
    for (;;) {
      const tried = await read();
      if (tried.ok) return tried.answer;
      if (!tried.passing) throw tried.error;
      await pause(clock, backoff.pauseMs(tried.retryAfterMs), signal);
    }
  }

  /** Fetches results that were too large for the claim, up to what handlers get in the process of Rota. */
  async #dependencies({ token, task, signal }: HeldAttempt): Promise<DependencyResult[]> {
    let left = DEPENDENCY_BYTES_MAX;
    const results: DependencyResult[] = [];
    for (const dependency of task.dependencies ?? []) {
      const isOmitted = "omitted" in dependency;
      const bytes = isOmitted ? dependency.resultBytes : (jsonText(dependency.result)?.length ?? 0);
      left -= bytes;
      if (!isOmitted || left < 0) {
        results.push(dependency);
        continue;
      }
      const { taskId } = dependency;
      const { result } = await this.#patiently(signal, () => this.#calls.dependency(token, taskId, signal));
      results.push({ taskId, result });
    }
    return results;
  }

  #isFinishing(token: string): boolean {
    return this.#finishing.has(token);
  }

  #finish(attempt: HeldAttempt, outcome: Outcome, length = 0): void {
    if (outcome.outcome === "failed") {
      const { taskId, agentId } = attempt.task;
      const { error } = outcome;
      this.#settings.client.log.warn(
        { taskId, agentId, attempt: attempt.number, error },
        "an attempt failed",
      );
    }
    attempt.end();
    this.#finishing.add(attempt.token);
    const { token, used } = attempt;
    const end = { attemptToken: token, ...outcome, ...(used === undefined ? {} : { usage: used }) };
    this.#finisher.add(end, length + OUTCOME_LENGTH);
  }

  /** The server has answered the finish. */
  #forget(token: string): void {
    this.#finishing.delete(token);
    if (this.#returned.has(token)) this.#free(token);
  }

  /** The handler has returned and the outcome is answered. */
  #free(token: string): void {
    this.#returned.delete(token);
    this.#held.get(token)?.end();
    this.#held.delete(token);
    this.#ended.add(token);
    if (this.#ended.size >= ENDED_KEPT) {
      this.#endedBefore = this.#ended;
      this.#ended = new Set();
    }
    this.#wakeClaims();
  }

  #hasEnded(token: string): boolean {
    return this.#ended.has(token) || this.#endedBefore.has(token);
  }

  #expire(attempt: HeldAttempt, error: string, retryable: boolean): void {
    this.#finish(attempt, { outcome: "failed", error, retryable });
    this.#abort(attempt, error);
  }

  #cancelled(ended: { readonly taskId: string; readonly number: number }, reason: string): void {
    for (const attempt of this.#held.values()) {
      const { over, task, number } = attempt;
      if (!over && task.taskId === ended.taskId && number === ended.number) this.#cancel(attempt, reason);
    }
  }

  /** The server has ended the attempt: its outcome is not sent. */
  #cancel(attempt: HeldAttempt, reason: string): void {
    attempt.log.debug({ reason }, "Rota ended the attempt");
    this.#abort(attempt, reason);
  }

  #abort(attempt: HeldAttempt, reason: string): void {
    attempt.abort(reason);
    const { log } = this.#settings.client;
    const { taskId } = attempt.task;
    const ignored = () => log.warn({ taskId }, "a handler ignores its abort signal and keeps its slot");
    attempt.limit(IGNORED_ABORT_MS, ignored);
  }

  async #stop(graceMs: number): Promise<void> {
    const { clock, log } = this.#settings.client;
    this.#claims.abort();
    this.#wakeClaims();
    await this.#started?.catch(() => undefined);
    await this.#until(() => this.#held.size === 0, graceMs);
    for (const attempt of this.#held.values()) {
      if (attempt.over) continue;
      this.#finish(attempt, { outcome: "released" });
      this.#abort(attempt, "released");
    }
    const gaveUp = clock.setTimer(LAST_FINISH_MS, () => this.#finisher.giveUp());
    await this.#finisher.idle();
    gaveUp.cancel();
    this.#heartbeats.stop();
    this.#signals.stop();
    if (this.#calls.registration !== null) {
      // The lease of a worker that cannot unregister runs out.
      const tried = await this.#calls.try("", { method: "DELETE" });
      if (!tried.ok)
        log.warn({ error: tried.error }, "could not unregister; the lease of the worker runs out");
    }
    if (this.#failure === null) this.#over.resolve();
    else this.#over.reject(this.#failure.error);
  }

  /** Waits until this holds or the time is up. */
  async #until(holds: () => boolean, ms: number): Promise<void> {
    const { clock } = this.#settings.client;
    const enough = new AbortController();
    const timer = clock.setTimer(ms, () => enough.abort());
    while (!holds() && !enough.signal.aborted) {
      await new Promise<void>((resolve) => {
        this.#onFree = resolve;
        enough.signal.addEventListener("abort", () => resolve(), { once: true });
      });
    }
    timer.cancel();
  }
}
