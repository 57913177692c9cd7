/** Workers, which pull tasks from elsewhere: one part of the contract in storage.ts. */
import type { TaskRecord } from "../model/task-record.ts";
import { type AttemptEnd, WORKERS_MAX, type WorkerState } from "../model/worker.ts";
import type { AttemptUsage, FinishedAttempt, Held, TaskLabels } from "./task-storage.ts";

/**
 * A worker is a process elsewhere that asks for tasks of its agents. Its attempts are leases like those of a node: they count in
 * every limit, and only the holder of the fencing token can end them. `node` of such an attempt is the id of the worker.
 *
 * An agent that a live worker names is served, for the tenant of the worker: no node runs it, unless the node has an executor
 * for it. It stays served for `AGENT_MEMORY_MS` after its last worker is gone, unless its tenant has `AGENTS_SEEN_MAX` later ones. Workers run agents whose executor is `worker`, and
 * those to which neither the catalogue nor a node gives one, dead nodes of the last `AGENT_MEMORY_MS` included: the tasks of any
 * other agent wait for that executor. A worker that names `*` runs all these agents of its tenant.
 */
export interface WorkerStorage {
  /**
   * Registers a worker. With the `instance` of an earlier one of the same tenant: replaces what is known of it, and returns its
   * id. `full`: there are too many live workers, of all tenants or of this one; see `workersFull`.
   * `served`: workers may not run this of its agents, because a node serves it, or did before it went away.
   * Writes the notification `worker.registered`, unless the worker is live already.
   */
  register(params: NewWorker): Promise<RegisteredWorker | RefusedWorker>;
  get(params: { tenant: string; id: string }): Promise<WorkerRecord | null>;
  /** Of a tenant, ordered by name, then by id. */
  list(params: ListWorkersParams): Promise<WorkerRecord[]>;
  /** The workers of a tenant, counted by state. States without a worker are left out. */
  count(params: { tenant: string }): Promise<WorkerCount[]>;
  /**
   * Stores signs of life. A worker that was lost is live again, with the notification `worker.registered`. Returns the ids that
   * no worker has, and those of lost workers that stay lost because there are too many others, as for `register`. Need not wait for the disk: after a power cut the next sign is stored again.
   */
  renew(params: { signs: readonly WorkerSign[] }): Promise<{ readonly unknown: readonly string[] }>;
  /** The worker gets no more tasks, and its record says so. False: there is none. */
  drain(params: { tenant: string; id: string }): Promise<boolean>;
  /** What any node needs to find workers that are gone and attempts that take too long. Lost workers only if they hold attempts. */
  watch(): Promise<WorkerWatch>;
  /**
   * Declares a worker lost if it has given no sign of life since `beat`. Its attempts stay until `takeBack`. Returns the names
   * of its agents; null: it gave a sign, or is lost already. Writes the notification `worker.lost`, unless the worker was
   * draining and held nothing: that one has left.
   */
  markLost(params: { worker: string; beat: number }): Promise<readonly string[] | null>;
  /** Deletes a worker that holds no attempts. False: there is none, or it holds some. */
  remove(params: { tenant: string; id: string }): Promise<boolean>;

  /**
   * Ends attempts that are still held, then claims tasks for waiting polls: one transaction for all of them, as
   * `tasks.finishAndClaim` for a node. A poll whose `claim` has live attempts gets those, and no others.
   *
   * Tasks start in the order of the scheduler, not of the polls. Of the lanes with something to start, the one with a critical
   * task goes first, then the one whose agent queue was served longest ago; within the lane tenants and agents follow as in any
   * claim. Of the polls that can run a task, the one whose worker holds the fewest attempts gets it; of several, the first. A
   * task that must run alone goes to a worker that holds nothing, and that gets nothing else until it has ended. The state of a
   * claimed task is `assigned`.
   *
   * Need not wait for the disk, as `finishAndClaim`.
   */
  exchange(params: WorkerExchangeParams): Promise<WorkerExchange>;
  /**
   * The attempts with these hashes of tokens, or with these fencing tokens, whether they are held or ended up to `CLAIM_KEPT_MS`
   * ago. Unknown ones are left out.
   */
  attempts(params: AttemptNames): Promise<WorkerAttempt[]>;
  /** How these attempts ended, in their order. Null: it is held, or its task is deleted. */
  ends(params: {
    attempts: readonly Pick<WorkerAttempt, "seq" | "number">[];
  }): Promise<(AttemptEnd | null)[]>;
  /**
   * A worker says that it still works on these attempts. Those that were `assigned` are `running` from then on. `all`: these are
   * all attempts that it knows; one that it named before and leaves out twice in a row is returned in `dropped`. `usage`: what
   * the attempt cost so far; figures that are smaller than stored ones change nothing.
   */
  name(params: {
    worker: string;
    attempts: readonly { readonly hash: string; readonly usage?: AttemptUsage }[];
    all: boolean;
  }): Promise<{ readonly dropped: readonly Held[] }>;
  /**
   * Takes attempts back from a worker: those given, or up to `limit` of all that it holds. The task is queued again; if
   * `counted` and it was `running`, that counts as a retry, and without a retry left the task fails. `maxLost`: each counts as
   * a loss of its task, as in `tasks.rescue`. Left out: the worker did not get them. Those that it has named it did get, by another
   * response to the same claim: they stay. The others leave no trace: no attempt of the task, no event and no signal `fenced`.
   * Otherwise a worker that cannot be reached would add to `attempts` at each claim. `recorded`: the worker itself reported this
   * end, as in `exchange`.
   */
  takeBack(params: TakeBackParams): Promise<TakenBack>;
  /**
   * Up to `limit` held attempts that are past their timeout, their task's deadline, or their lease without having been named.
   */
  overdue(params: { limit: number }): Promise<OverdueAttempt[]>;
  /**
   * Pre-empts a running task for each ready critical task that workers run and that lacks only a slot: no worker that can run it
   * has one free, or its lane is at its total. A worker that has a free slot but does not ask for tasks (`NOT_POLLING_MS`) would
   * get neither the critical task nor the slot of another: it counts for nothing. It looks at the first `limit` such tasks. The pre-empted task is one of the same
   * tenant and lane, marked `preemptible`, on a worker that can run the critical one; see `tasks.insert`.
   */
  preempt(params: { limit: number }): Promise<{ readonly preempted: number }>;
  /**
   * Forgets attempts that ended `CLAIM_KEPT_MS` ago, counts of more than ten minutes ago, workers that were lost
   * `WORKER_KEPT_MS` ago, and of each tenant all lost workers but the `LOST_WORKERS_MAX` that were seen last. A worker that
   * holds attempts stays.
   */
  prune(): Promise<void>;
}

/** How long attempts are known after they ended, so that a repeated claim or finish finds them. */
export const CLAIM_KEPT_MS = 60_000;
/** How long a lost worker is listed. */
export const WORKER_KEPT_MS = 60 * 60_000;
/** How many lost workers a tenant has: all workers of an installation may be lost and come back. */
export const LOST_WORKERS_MAX = WORKERS_MAX;
/** How many agents of workers that are gone a tenant has: those that were named last. */
export const AGENTS_SEEN_MAX = 1_000;
/** How many attempts one poll gets at most. */
export const CLAIMED_PER_POLL_MAX = 100;
/** Stands for all agents that a worker may run. */
export const ALL_AGENTS = "*";

export interface NewWorker {
  readonly id: string;
  readonly tenant: string;
  /** Identifies the process, whatever its name; null: no other registration means this worker. */
  readonly instance: string | null;
  /** The API key that registered it; null: there are no keys. */
  readonly key: string | null;
  readonly name: string;
  /** `["*"]`: all that it may run. */
  readonly agents: readonly string[];
  readonly slots: number;
  readonly labels: Readonly<Record<string, string>>;
  readonly version: string | null;
  readonly runtime: string | null;
  readonly leaseMs: number;
  readonly heartbeatMs: number;
}

export interface ListWorkersParams {
  readonly tenant: string;
  /** Left out: all. */
  readonly limit?: number;
  /** Only those after this one. */
  readonly after?: Pick<WorkerRecord, "name" | "id">;
  /** Only those that are not lost and name one of these. */
  readonly agents?: readonly string[];
}

export interface WorkerCount {
  readonly state: WorkerState;
  readonly count: number;
  /** Of these workers together, as `held`. */
  readonly slots: number;
  readonly held: number;
}

export interface RegisteredWorker {
  readonly id: string;
  readonly isNew: boolean;
}

export type RefusedWorker = { readonly full: "installation" | "tenant" } | { readonly served: string };

export interface WorkerRecord extends NewWorker {
  readonly draining: boolean;
  readonly lost: boolean;
  readonly registeredAt: number;
  /** When it last gave a sign of life. */
  readonly seenAt: number;
  /** When it last asked for tasks; null: never. */
  readonly polledAt: number | null;
  /** How many attempts it holds. */
  readonly held: number;
  /** Attempts that ended in the last ten minutes. */
  readonly done: number;
  readonly failed: number;
}

export interface WorkerSign {
  readonly worker: string;
  /** Whether it asked for tasks, or still waits for some. */
  readonly polls: boolean;
}

export interface WorkerWatch {
  /** Whether there is a worker, lost ones included. */
  readonly any: boolean;
  readonly workers: readonly {
    readonly worker: string;
    readonly tenant: string;
    readonly name: string;
    /** Grows with every sign of life. Compare it with an earlier value, not with a clock. */
    readonly beat: number;
    readonly lost: boolean;
    readonly leaseMs: number;
    readonly held: number;
    readonly slots: number;
    readonly draining: boolean;
    readonly registeredAt: number;
    readonly polledAt: number | null;
  }[];
  /** The earliest time at which `overdue` will return something; null: there is none. */
  readonly nextDueAt: number | null;
}

export interface WorkerExchangeParams {
  readonly finishes: readonly WorkerFinish[];
  readonly progress: readonly (Held & { readonly worker: string; readonly progress: unknown })[];
  /** The longest waiting first. */
  readonly polls: readonly WorkerPoll[];
}

export interface WorkerFinish extends FinishedAttempt {
  readonly worker: string;
  /** Whether the worker reported this end; false: Rota decided it. */
  readonly recorded: boolean;
}

/** The tokens of attempts that ended because Rota decided so: their workers do not know it yet. */
export function endsOfRota(
  finishes: readonly WorkerFinish[],
  finished: readonly { readonly token: number }[],
): number[] {
  const ended = new Set(finished.map(({ token }) => token));
  return finishes.filter(({ token, recorded }) => !recorded && ended.has(token)).map(({ token }) => token);
}

export interface WorkerPoll {
  readonly worker: string;
  /** A hash of the id of the claim. */
  readonly claim: string;
  /** How many tasks it wants. The slots of its worker limit it, too. */
  readonly max: number;
  /** Only tasks of these of its agents; null: of all. */
  readonly agents: readonly string[] | null;
  /** No tasks of these agents; left out: there are no such. */
  readonly except?: readonly string[];
  /** For each task that it may get: the hash of the token of the attempt, and what the token was made of. */
  readonly tokens: readonly AttemptSecret[];
}

export interface AttemptSecret {
  readonly hash: string;
  readonly nonce: string;
}

export interface WorkerExchange {
  /** The attempts whose token was still held. */
  readonly finished: readonly { readonly token: number; readonly state: TaskRecord["state"] }[];
  /** In the order of the polls. Null: the worker is unknown or lost. */
  readonly claimed: readonly (readonly AssignedTask[] | null)[];
  /** The overdue tasks that this call failed. */
  readonly expired: readonly TaskLabels[];
  /** Whether tasks that these polls could run are ready, but limits hold them back. */
  readonly held: boolean;
  /** As in `FinishedAndClaimed`. */
  readonly durable?: Promise<void>;
}

export interface AssignedTask {
  readonly token: number;
  readonly nonce: string;
  readonly task: TaskRecord;
  /** About how much memory its input takes: `jsonWeight` of what is stored. */
  readonly bytes: number;
  readonly assignedAt: number;
}

export type AttemptNames = { readonly hashes: readonly string[] } | { readonly tokens: readonly number[] };

export interface WorkerAttempt extends Held {
  readonly hash: string;
  readonly worker: string;
  readonly tenant: string;
  readonly taskId: string;
  readonly number: number;
  /** Whether the attempt still holds its task. */
  readonly held: boolean;
  /** Whether an end that its worker reported was stored. */
  readonly recorded: boolean;
  /** What `name` stored; null: nothing. */
  readonly usage: AttemptUsage | null;
}

export interface TakeBackParams {
  readonly worker: string;
  /** Left out: all that it holds. */
  readonly attempts?: readonly Held[];
  readonly limit: number;
  readonly counted: boolean;
  readonly maxLost?: number;
  readonly recorded?: boolean;
  /** Why, if the task goes back. */
  readonly error: string;
}

export interface TakenBack {
  readonly requeued: readonly (TaskLabels & { readonly id: string })[];
  readonly failed: readonly (TaskLabels & { readonly id: string })[];
}

export interface OverdueAttempt extends Held {
  readonly worker: string;
  /** `unnamed`: the worker never said that it works on it, for a whole lease. */
  readonly reason: "timeout" | "deadline" | "unnamed";
  readonly task: TaskRecord;
}
