import { cleanText, ERROR_BYTES_MAX } from "../../attempts/attempt-error.ts";
import { addUsage } from "../../attempts/usage-sum.ts";
import { PROGRESS_BYTES_MAX, type Usage } from "../../executors/executor.ts";
import { type Outcome, settle } from "../../model/outcome.ts";
import { runSummary } from "../../model/run.ts";
import type { TakenMessage } from "../../model/session.ts";
import type { TaskLogLevel } from "../../model/task-log.ts";
import type { TaskRecord } from "../../model/task-record.ts";
import { jsonWeight } from "../../model/text/json-weight.ts";
import { hideTaskTokens, hideTaskTokensIn } from "../../model/text/task-token-mask.ts";
import {
  type AttemptReason,
  endOfAttempt,
  RELEASED,
  WORKER_LOST,
  type WorkerOutcome,
} from "../../model/worker.ts";
import type {
  AssignedTask,
  AttemptSecret,
  AttemptUsage,
  Storage,
  WorkerAttempt,
} from "../../storage/storage.ts";
import type { LoggingAttempt } from "../work/log-keeper.ts";
import type { MetricsByTenant } from "../work/metrics-by-tenant.ts";
import { checkJson, RESULT_BYTES_MAX } from "../work/result-json.ts";
import type { SecretHider } from "../work/secret-hider.ts";
import { hashOfToken } from "./attempt-token.ts";
import { KeptTasks } from "./kept-tasks.ts";
import type { WorkerDispatcher } from "./worker-dispatcher.ts";
import type { WorkerWatch } from "./worker-watch.ts";

/** Of how many attempts this node remembers that nothing was reported yet, and where their logs are. */
const KEPT_MAX = 2_000;

/** The lines of an attempt that was assigned on another node are numbered from here on. */
const LINES_ELSEWHERE = 1_000_000;

export interface WorkerAttemptsOptions {
  readonly storage: Storage;
  readonly storageNow: () => number;
  readonly random: () => number;
  readonly dispatcher: WorkerDispatcher;
  readonly watch: WorkerWatch;
  readonly metrics: MetricsByTenant;
  readonly secrets: SecretHider;
  /** Stores a log line of an attempt. */
  readonly addLog: (attempt: LoggingAttempt, line: ReportedLine) => void;
  /** Carries out what a result asks for, such as writs. Returns the result to store; null: it asks for nothing. */
  readonly processResult: (record: TaskRecord, result: unknown) => Promise<unknown> | null;
  readonly contextWindow: (record: TaskRecord) => number | undefined;
}

export interface ReportedLine {
  readonly at: number | null;
  readonly level: TaskLogLevel;
  readonly text: string;
}

/** What a worker reports about an attempt while it works on it. */
export interface AttemptReport {
  readonly attemptToken: string;
  readonly progress?: unknown;
  readonly usage?: Usage;
  readonly log?: readonly ReportedLine[];
  /** Takes messages in mode `steer`: those after this position. */
  readonly messagesAfter?: number;
}

export interface ReportAnswer {
  readonly attemptToken: string;
  readonly ok: boolean;
  readonly cancel?: AttemptReason;
  readonly messages?: readonly TakenMessage[];
}

/** How a worker ends an attempt. */
export interface AttemptFinish {
  readonly attemptToken: string;
  readonly outcome: WorkerOutcome;
  readonly result?: unknown;
  readonly error?: string;
  readonly retryable: boolean;
  readonly retryAfterMs?: number;
  readonly usage?: Usage;
}

export interface FinishAnswer {
  readonly attemptToken: string;
  readonly recorded: boolean;
  readonly repeated?: true;
  readonly reason?: AttemptReason;
}

/** What workers report about their attempts. */
export class WorkerAttempts {
  readonly #options: WorkerAttemptsOptions;
  /** Tasks that were assigned here. */
  readonly #tasks = new KeptTasks();
  /**
   * Attempts that were assigned here and of which nothing was reported yet, by the hash of their token. Only if this is the only
   * node: they may have reported something to another.
   */
  readonly #fresh = new Map<string, WorkerAttempt>();
  readonly #logging = new Map<number, LoggingAttempt>();
  /** Tasks that a worker has named here, and that may make way for a critical one. */
  readonly #yielding = new WeakSet<TaskRecord>();
  /** The hashes of tokens that the next query looks up. */
  #wanted: string[] = [];
  #lookedUp: Promise<ReadonlyMap<string, WorkerAttempt>> | null = null;

  constructor(options: WorkerAttemptsOptions) {
    this.#options = options;
  }

  assigned(worker: string, tasks: readonly AssignedTask[], secrets: readonly AttemptSecret[]): void {
    for (const { token, task, bytes } of tasks) this.#tasks.keep(token, task, bytes);
    if (!this.#options.storage.capabilities.exclusive) return;
    const hashes = new Map(secrets.map(({ nonce, hash }) => [nonce, hash]));
    for (const { token, nonce, task } of tasks) {
      const hash = hashes.get(nonce);
      // The claim is a repeated one.
      if (hash === undefined) continue;
      const { tenant, id: taskId, seq, attempts } = task;
      const state = { number: attempts.at(-1)?.number ?? 1, held: true, recorded: false, usage: null };
      if (this.#fresh.size >= KEPT_MAX) this.#fresh.delete(this.#fresh.keys().next().value ?? "");
      this.#fresh.set(hash, { hash, worker, tenant, taskId, seq, token, ...state });
    }
  }

  /** These attempts are over, and not because their worker ended them. */
  fenced(tokens: readonly number[]): void {
    for (const token of tokens) this.#forgetEnded(token);
    if (this.#fresh.size === 0) return;
    const ended = new Set(tokens);
    for (const [hash, { token }] of this.#fresh) if (ended.has(token)) this.#fresh.delete(hash);
  }

  /** The attempt of a token, whichever worker has it. */
  async findAny(token: string): Promise<WorkerAttempt | null> {
    const [attempt] = await this.#options.storage.workers.attempts({ hashes: [hashOfToken(token)] });
    return attempt ?? null;
  }

  /** `all`: these are all attempts that the worker knows. Several reports of one attempt count as one. */
  async heartbeat(
    worker: string,
    given: readonly AttemptReport[],
    { all }: { all: boolean },
  ): Promise<ReportAnswer[]> {
    const { storage, watch } = this.#options;
    const reports = oneOfEach(given);
    const found = await this.#findAll(worker, reports);
    const held = reports.flatMap((report) => {
      const attempt = found.get(report.attemptToken);
      return attempt?.held ? [{ report, attempt }] : [];
    });
    if (all || held.length > 0) {
      const named = await Promise.all(
        held.map(async ({ report, attempt }) => {
          const usage = report.usage && (await this.#usageOf(attempt, report.usage));
          return { hash: attempt.hash, ...(usage && { usage }) };
        }),
      );
      const { dropped } = await storage.workers.name({ worker, attempts: named, all });
      await watch.takeBack(worker, dropped, { counted: true, error: WORKER_LOST });
      this.#expectCritical(held);
    }
    for (const { report, attempt } of held) this.#log(attempt, report);
    await Promise.all(held.map((each) => this.#reportProgress(worker, each)));
    const over = [...found.values()].filter((attempt) => !attempt.held);
    const reasons = await this.#reasonsOf(over);
    return Promise.all(
      reports.map(async ({ attemptToken, messagesAfter: after }): Promise<ReportAnswer> => {
        const attempt = found.get(attemptToken);
        if (!attempt?.held) {
          const cancel = (attempt && reasons.get(attempt)) ?? "unknown";
          return { attemptToken, ok: false, cancel };
        }
        const { seq, token } = attempt;
        const messages =
          after === undefined ? [] : await storage.sessions.takeMessages({ seq, token, after });
        return { attemptToken, ok: true, ...(messages.length > 0 && { messages }) };
      }),
    );
  }

  /** A task can be pre-empted once its worker has named it. A critical task may wait for that already. */
  #expectCritical(held: readonly { readonly attempt: WorkerAttempt }[]): void {
    for (const { attempt } of held) {
      const record = this.#tasks.get(attempt.token);
      if (record?.spec.preemptible !== true || this.#yielding.has(record)) continue;
      this.#yielding.add(record);
      this.#options.watch.expectCritical();
    }
  }

  async #reportProgress(
    worker: string,
    { report, attempt }: { readonly report: AttemptReport; readonly attempt: WorkerAttempt },
  ): Promise<void> {
    if (report.progress === undefined) return;
    const checked = checkJson("progress", report.progress, PROGRESS_BYTES_MAX);
    if (!checked.ok) {
      // A progress report that cannot be stored must not fail its attempt.
      const text = `${checked.error}; it is left out`;
      return this.#log(attempt, { log: [{ at: null, level: "warn", text }] });
    }
    const record = await this.#recordOf(attempt);
    if (record === null) return;
    const { dispatcher, secrets } = this.#options;
    const progress = hideTaskTokensIn(secrets.hideModelSecrets(record, checked.value));
    await dispatcher.report({ worker, seq: attempt.seq, token: attempt.token, progress });
  }

  /** Ends attempts. Repeating it changes nothing. */
  async finish(worker: string, finishes: readonly AttemptFinish[]): Promise<FinishAnswer[]> {
    return (await this.beginFinish(worker, finishes)).answers;
  }

  /** The same. Resolves as soon as a poll that is added next finds the slots of these attempts free. */
  async beginFinish(
    worker: string,
    finishes: readonly AttemptFinish[],
  ): Promise<{ readonly answers: Promise<FinishAnswer[]> }> {
    const found = await this.#findAll(worker, finishes, { ends: true });
    const answers = new Map<string, Promise<FinishAnswer>>();
    // Complete from the start: the first end may be pending before the next one is looked at.
    const open = new Set(finishes.map(({ attemptToken }) => attemptToken));
    const arePending = Promise.withResolvers<void>();
    const markPending = (attemptToken: string) => {
      open.delete(attemptToken);
      if (open.size === 0) arePending.resolve();
    };
    const all = finishes.map((finish) => {
      const { attemptToken } = finish;
      const earlier = answers.get(attemptToken);
      // Of several ends of one attempt in a request the first counts.
      if (earlier !== undefined) return earlier.then(asRepeated);
      const mark = () => markPending(attemptToken);
      const answer = this.#finishOne(finish, found.get(attemptToken), mark);
      if (open.has(attemptToken)) answer.then(mark, mark);
      answers.set(attemptToken, answer);
      return answer;
    });
    const ended = Promise.all(all);
    // The caller of the answers handles it.
    ended.catch(() => undefined);
    if (open.size > 0) await arePending.promise;
    return { answers: ended };
  }

  /** `onPending`: called once the next exchange of the dispatcher ends the attempt. */
  async #finishOne(
    finish: AttemptFinish,
    attempt: WorkerAttempt | undefined,
    onPending: () => void,
  ): Promise<FinishAnswer> {
    const { attemptToken } = finish;
    if (attempt === undefined) return { attemptToken, recorded: false, reason: "unknown" };
    if (attempt.held && (await this.#end(finish, attempt, onPending)))
      return { attemptToken, recorded: true };
    const [now] = attempt.held
      ? await this.#options.storage.workers.attempts({ hashes: [attempt.hash] })
      : [attempt];
    if (now?.recorded) return { attemptToken, recorded: true, repeated: true };
    const reason = (await this.#reasonsOf([attempt])).get(attempt) ?? "unknown";
    // Deleting its worker released it.
    if (reason === "released" && finish.outcome === "released")
      return { attemptToken, recorded: true, repeated: true };
    return { attemptToken, recorded: false, reason };
  }

  /** Returns whether the attempt was still held. Calls `onPending` at once if it need not ask the storage before. */
  async #end(finish: AttemptFinish, attempt: WorkerAttempt, onPending: () => void): Promise<boolean> {
    const { dispatcher, watch, metrics, random, storageNow } = this.#options;
    const { worker, seq, token } = attempt;
    if (finish.outcome === "released") {
      const { requeued, failed } = await watch.takeBack(worker, [attempt], {
        counted: false,
        recorded: true,
        error: RELEASED,
      });
      this.#forgetEnded(token);
      return requeued.length + failed.length > 0;
    }
    const record = this.#tasks.get(token) ?? (await this.#recordOf(attempt));
    if (record === null) return false;
    const made = this.#outcomeOf(finish, record);
    const outcome = made instanceof Promise ? await made : made;
    const settlement = settle(outcome, {
      retryPolicy: record.spec.retryPolicy,
      retryCount: record.retryCount,
      deadline: record.deadline,
      now: storageNow(),
      random,
    });
    const usage =
      finish.usage === undefined ? (attempt.usage ?? undefined) : await this.#usageOf(attempt, finish.usage);
    const summary =
      record.schedule !== null && settlement.to === "done" ? runSummary(settlement.result) : undefined;
    const ending = dispatcher.finish({
      record,
      finish: {
        ...{ worker, seq, token, settlement, recorded: true },
        ...(usage === undefined ? {} : { usage }),
        ...(summary === undefined ? {} : { summary }),
      },
    });
    onPending();
    const state = await ending;
    this.#forgetEnded(token);
    if (state === null) return false;
    const attempted = record.attempts.at(-1);
    const { tenant } = record;
    if (attempted !== undefined)
      metrics.of(tenant).ran(record, Math.max(storageNow() - attempted.startedAt, 0));
    if (usage !== undefined) metrics.of(tenant).used(record, usage);
    return true;
  }

  /** A promise only if the result asks for something. */
  #outcomeOf(finish: AttemptFinish, record: TaskRecord): Outcome | Promise<Outcome> {
    const { secrets, processResult } = this.#options;
    if (finish.outcome === "done") {
      const checked = checkJson("result", finish.result, RESULT_BYTES_MAX);
      if (!checked.ok)
        return { kind: "failed", error: cleanText(checked.error, ERROR_BYTES_MAX), permanent: true };
      const done = (result: unknown) => {
        return { kind: "done", result: hideTaskTokensIn(secrets.hideModelSecrets(record, result)) } as const;
      };
      const processed = processResult(record, checked.value);
      return processed === null ? done(checked.value) : processed.then(done);
    }
    const error = cleanText(finish.error ?? "failed without a message", ERROR_BYTES_MAX);
    return {
      kind: "failed",
      error: secrets.hide(record, error),
      permanent: !finish.retryable,
      ...(finish.retryAfterMs === undefined ? {} : { retryAfterMs: finish.retryAfterMs }),
    };
  }

  /**
   * The total of an attempt: what is stored, and what is larger in the report. How much of the context its last model call used
   * cannot be derived from totals.
   */
  async #usageOf(attempt: WorkerAttempt, reported: Usage): Promise<AttemptUsage | undefined> {
    const before = attempt.usage;
    const record = await this.#recordOf(attempt);
    const added = addUsage(null, reported, record === null ? undefined : this.#options.contextWindow(record));
    if (!added.ok) return before ?? undefined;
    const { contextTokens: _, ...sum } = added.sum;
    const { contextTokens } = reported;
    return {
      ...before,
      ...sum,
      ...(contextTokens === undefined ? {} : { contextTokens }),
      inputTokens: Math.max(before?.inputTokens ?? 0, added.sum.inputTokens),
      outputTokens: Math.max(before?.outputTokens ?? 0, added.sum.outputTokens),
    };
  }

  #log(attempt: WorkerAttempt, { log }: Pick<AttemptReport, "log">): void {
    if (log === undefined || log.length === 0) return;
    const known = this.#logging.get(attempt.token);
    // Another node may have stored lines of an attempt that was not assigned here.
    const startN = this.#tasks.has(attempt.token) ? 0 : LINES_ELSEWHERE;
    const logging = known ?? { record: { seq: attempt.seq }, number: attempt.number, startN };
    if (known === undefined) {
      if (this.#logging.size >= KEPT_MAX) this.#logging.delete(this.#logging.keys().next().value ?? 0);
      this.#logging.set(attempt.token, logging);
    }
    const record = this.#tasks.get(attempt.token);
    for (const line of log) {
      const text =
        record === undefined ? hideTaskTokens(line.text) : this.#options.secrets.hide(record, line.text);
      this.#options.addLog(logging, { ...line, text });
    }
  }

  async #findAll(
    worker: string,
    given: readonly { readonly attemptToken: string }[],
    { ends = false }: { readonly ends?: boolean } = {},
  ): Promise<Map<string, WorkerAttempt>> {
    const tokens = new Map(given.map(({ attemptToken }) => [hashOfToken(attemptToken), attemptToken]));
    const found = (ends ? this.#takeFresh(tokens) : null) ?? (await this.#lookUp([...tokens.keys()]));
    // From now on the storage knows more than this node.
    for (const hash of tokens.keys()) this.#fresh.delete(hash);
    return new Map(
      found.flatMap((attempt) => {
        const token = tokens.get(attempt.hash);
        return token === undefined || attempt.worker !== worker ? [] : [[token, attempt] as const];
      }),
    );
  }

  /** Null if the storage has to be asked for one of them. */
  #takeFresh(hashes: ReadonlyMap<string, unknown>): WorkerAttempt[] | null {
    const fresh = [...hashes.keys()].flatMap((hash) => this.#fresh.get(hash) ?? []);
    return fresh.length === hashes.size ? fresh : null;
  }

  /** One query for all requests of the same turn of the event loop. */
  async #lookUp(hashes: readonly string[]): Promise<WorkerAttempt[]> {
    this.#wanted.push(...hashes);
    this.#lookedUp ??= new Promise<void>((resolve) => setImmediate(resolve)).then(async () => {
      const wanted = [...new Set(this.#wanted)];
      this.#wanted = [];
      this.#lookedUp = null;
      const found = await this.#options.storage.workers.attempts({ hashes: wanted });
      return new Map(found.map((attempt) => [attempt.hash, attempt]));
    });
    const found = await this.#lookedUp;
    return hashes.flatMap((hash) => found.get(hash) ?? []);
  }

  /** Why these attempts are over, in one query. */
  async #reasonsOf(attempts: readonly WorkerAttempt[]): Promise<Map<WorkerAttempt, AttemptReason>> {
    if (attempts.length === 0) return new Map();
    const ends = await this.#options.storage.workers.ends({ attempts });
    return new Map(attempts.map((attempt, index) => [attempt, endOfAttempt(ends[index] ?? null)]));
  }

  /** The task of an attempt that is held; null: it is not held any more. */
  async #recordOf({ token, tenant, taskId, number }: WorkerAttempt): Promise<TaskRecord | null> {
    const known = this.#tasks.get(token);
    if (known !== undefined) return known;
    const record = await this.#options.storage.tasks.get({ tenant, id: taskId });
    const last = record?.attempts.at(-1);
    if (record === null || last?.number !== number || last.endedAt !== null) return null;
    this.#tasks.keep(token, record, jsonWeight(JSON.stringify(record.spec)));
    return record;
  }

  #forgetEnded(token: number): void {
    this.#tasks.forget(token);
    this.#logging.delete(token);
  }
}

/** Of several reports of one attempt the last counts, with the log lines of all. */
function oneOfEach(reports: readonly AttemptReport[]): AttemptReport[] {
  const byToken = Map.groupBy(reports, ({ attemptToken }) => attemptToken);
  if (byToken.size === reports.length) return [...reports];
  return [...byToken].map(([attemptToken, own]) => {
    const log = own.flatMap((report) => report.log ?? []);
    return Object.assign({ attemptToken }, ...own, log.length > 0 && { log });
  });
}

function asRepeated(answer: FinishAnswer): FinishAnswer {
  return answer.recorded ? { ...answer, repeated: true } : answer;
}
