import type { TaskSession } from "../executors/executor.ts";
import type {
  AttemptFinishInput,
  AttemptHeartbeatInput,
  ClaimInput,
  FinishInput,
  HeartbeatInput,
  WorkerInput,
  WorkerPageInput,
} from "../model/input/worker-schema.ts";
import type { TakenMessage } from "../model/session.ts";
import type { Task } from "../model/task.ts";
import type { AttemptReason, WorkerSignal, WorkerState } from "../model/worker.ts";

export type {
  AttemptFinishInput,
  AttemptHeartbeatInput,
  AttemptReason,
  ClaimInput,
  FinishInput,
  HeartbeatInput,
  WorkerInput,
  WorkerPageInput,
  WorkerState,
};

/** Processes elsewhere that pull tasks. */
export interface Workers {
  /**
   * A page of the workers of the tenant, ordered by name. Lost ones are listed for an hour. Throws `invalid_field`.
   *
   * @example
   * const { workers, nextCursor } = await rota.workers.list({ limit: 10 });
   */
  list(page?: WorkerPageInput): Promise<WorkerList>;
  /** Throws `unknown_worker`. */
  get(id: string): Promise<WorkerInfo>;
  /** Asks the worker, with its next responses, to drain: it finishes its tasks and ends. Throws `unknown_worker`. */
  drain(id: string): Promise<WorkerInfo>;
  /** Removes a worker. Its tasks go back to the queue. Throws `unknown_worker`. */
  delete(id: string): Promise<DeletedWorker>;
}

/** What workers call. The server passes each call on, with the caller that it is for. */
export interface LocalWorkers extends Workers {
  register(input: WorkerInput, caller: WorkerCaller): Promise<RegisteredWorker>;
  /** Waits for tasks. Throws `unknown_worker`, `too_many_polls`. */
  claim(id: string, input: ClaimInput, options: ClaimOptions): Promise<DeliverableClaim>;
  heartbeat(id: string, input: HeartbeatInput, caller: WorkerCaller): Promise<HeartbeatAnswer>;
  finish(id: string, input: FinishInput, caller: WorkerCaller): Promise<FinishAnswers>;
  /** What happens to the attempts of a worker, and to itself. An earlier feed of the same worker ends. Throws `unknown_worker`. */
  signals(id: string, caller: WorkerCaller): Promise<WorkerSignalFeed>;
  deleteOwn(id: string, caller: WorkerCaller): Promise<DeletedWorker>;
  heartbeatAttempt(
    token: string,
    input: AttemptHeartbeatInput,
    caller: WorkerCaller,
  ): Promise<HeartbeatAnswer["attempts"][number] & Pick<HeartbeatAnswer, "drain" | "now" | "leaseMs">>;
  finishAttempt(
    token: string,
    input: AttemptFinishInput,
    caller: WorkerCaller,
  ): Promise<FinishAnswers["attempts"][number]>;
  /** The session of the task of an attempt, as executors see it. Throws `not_found` when the attempt is over. */
  session(
    token: string,
    params: { readonly turns?: number | undefined },
    caller: WorkerCaller,
  ): Promise<{ readonly session: TaskSession | null }>;
  /** The result of a dependency that did not fit into the response to the claim. Throws `not_found`. */
  dependency(
    token: string,
    taskId: string,
    caller: WorkerCaller,
  ): Promise<{ readonly taskId: string; readonly result: unknown }>;
}

/** Who calls for a worker. */
export interface WorkerCaller {
  /** Null: no key was required. */
  readonly keyId: string | null;
  /** The agents that the key may run; null: all. */
  readonly agents: readonly string[] | null;
  /** Called with the worker of the attempt that a call names, once it is known that the caller may act for it. */
  readonly onWorker?: (id: string) => void;
}

export interface ClaimOptions extends WorkerCaller {
  /** Fires when the connection of the caller is gone. */
  readonly gone: AbortSignal;
}

/** Ends when another one is opened, when the worker is removed, and when another key registers the worker. */
export interface WorkerSignalFeed extends AsyncIterable<WorkerSignal> {
  end(): void;
}

export interface RegisteredWorker {
  readonly workerId: string;
  readonly leaseMs: number;
  readonly heartbeatMs: number;
  readonly maxWaitS: number;
  /** How many `finishes` a claim may carry. */
  readonly finishesPerClaim: number;
  /** RFC 3339. */
  readonly now: string;
}

export interface ClaimAnswer {
  readonly attempts: readonly ClaimedAttempt[];
  /** The worker should finish what it has and claim no more; with `retryInMs`: only this node stops, claim again after that. */
  readonly drain?: true;
  /** Claim again after this long: this node stops, or nearly as many claims wait on it as it allows. */
  readonly retryInMs?: number;
  /** For each of the `finishes` of the claim, in their order. */
  readonly finished?: FinishAnswers["attempts"];
}

export interface ClaimedAttempt {
  readonly attemptToken: string;
  /** Lets the handler call Rota as its agent within this task, until the attempt has ended: the header `X-Rota-Task-Token`. */
  readonly taskToken: string;
  readonly number: number;
  readonly leaseMs: number;
  /** Null: only the deadline limits it. */
  readonly timeoutMs: number | null;
  readonly deadlineInMs?: number;
  readonly tenantId: string;
  /** The context window of the agent's model, if its definition names one. */
  readonly contextWindow?: number;
  /** As executors get it, with the results of its dependencies. */
  readonly task: Task;
}

/** The response to a claim. */
export interface DeliverableClaim {
  readonly answer: ClaimAnswer;
  /** `JSON.stringify` of the task of each attempt. */
  readonly taskTexts: readonly string[];
  /**
   * Call this once the response was sent, or could not be: then the tasks go back at once, uncounted, unless the worker has repeated
   * the claim or named them meanwhile.
   */
  ended(result: { readonly sent: boolean }): Promise<void>;
}

export interface HeartbeatAnswer {
  readonly attempts: readonly {
    readonly attemptToken: string;
    /** False: the attempt is over, `cancel` says why. Its worker should stop working on it. */
    readonly ok: boolean;
    readonly cancel?: AttemptReason;
    /** The messages that it has taken, after the position in `messagesAfter`. Left out: none. */
    readonly messages?: readonly TakenMessage[];
  }[];
  readonly drain: boolean;
  /** RFC 3339. */
  readonly now: string;
  readonly leaseMs: number;
}

export interface FinishAnswers {
  readonly attempts: readonly {
    readonly attemptToken: string;
    /** Whether this end, or the same one before, was stored. */
    readonly recorded: boolean;
    readonly repeated?: true;
    /** Why it was not. */
    readonly reason?: AttemptReason;
  }[];
}

export interface WorkerInfo {
  readonly id: string;
  readonly name: string;
  readonly agents: readonly string[];
  readonly slots: number;
  /** Attempts that it holds. */
  readonly running: number;
  readonly state: WorkerState;
  /** RFC 3339. */
  readonly lastSeenAt: string;
  readonly version: string | null;
  readonly runtime: string | null;
  readonly labels: Readonly<Record<string, string>>;
  readonly doneLast10m: number;
  readonly failedLast10m: number;
}

export interface WorkerList {
  readonly workers: readonly WorkerInfo[];
  /** Of this page. */
  readonly count: number;
  /** Where the next page begins; null on the last one. */
  readonly nextCursor: string | null;
}

export interface DeletedWorker {
  /** The tasks that went back to the queue. */
  readonly released: readonly string[];
}
