import type { Bulk } from "../../src/interface/bulks.ts";
import type { DoctorReport } from "../../src/interface/doctor.ts";
import type { Run } from "../../src/interface/schedules.ts";
import type { Delivery } from "../../src/model/delivery.ts";
import type { RotaEvent } from "../../src/model/event.ts";
import type { DependencyResult, Task } from "../../src/model/task.ts";
import type { TerminalState } from "../../src/model/task-state.ts";

/** All that is known of a run afterwards: what the checks look at, and nothing else. */
export interface History {
  readonly limits: Limits;
  /** What servers responded to clients, in order. */
  readonly acknowledged: readonly Acknowledgement[];
  /** The ids of the tasks for which a client requested a retry, once for each request. */
  readonly retriesAsked: readonly string[];
  /** The ids of the callbacks for which a client requested another delivery. */
  readonly resendsAsked: readonly string[];
  /** What the agents' program saw. */
  readonly calls: readonly Call[];
  /** How Rota responded to the reports of workers about their attempts. Left out: there was no worker. */
  readonly finishes?: readonly Finish[];
  /** The requests that receivers of callbacks got, in order. */
  readonly callbacks: readonly Callback[];
  /** The outcomes of callbacks, as Rota lists them. */
  readonly deliveries: readonly Delivery[];
  /** What was done to processes that may keep them from hanging up in time. */
  readonly strikes: readonly Strike[];
  /**
   * Crashes of the database, each from when a start could be forgotten until nothing that was forgotten can still call.
   * Left out: there was none.
   */
  readonly crashes?: readonly Span[];
  /** The processes that can execute an agent's tasks, of agents that not every process can. Left out: every process can. */
  readonly homes?: Readonly<Record<string, readonly string[]>>;
  /** The log, as it was read at the end. */
  readonly events: readonly RotaEvent[];
  readonly followed: readonly Followed[];
  /** Every task, as it was at the end. */
  readonly tasks: ReadonlyMap<string, Task>;
  readonly schedules: readonly number[];
  /** The changes of schedules, in the order of the responses. */
  readonly edits: readonly Edit[];
  readonly runs: readonly Run[];
  /**
   * Schedules that were changed, paused or deleted meanwhile: their moments need not follow each other, and those that are
   * gone have taken their runs with them. Left out: none was.
   */
  readonly fickle?: readonly number[];
  /** The bulk actions that servers accepted, as they were at the end. Left out: there was none. */
  readonly bulks?: readonly Bulk[];
  /** The statistics over time of each tenant. Left out: they were not read. */
  readonly counted?: readonly Counted[];
  readonly doctor: DoctorReport;
  /** What each tenant could read at the end, by its name. */
  readonly views: readonly { readonly tenantId: string; readonly things: readonly string[] }[];
  readonly knocks: readonly Knock[];
}

export interface Counted {
  readonly tenantId: string;
  readonly counts: Readonly<Record<"submitted" | "started" | "done" | "failed" | "cancelled", number>>;
}

/** The numbers of the events that a reader received during the run. */
export interface Followed {
  readonly tenantId: string;
  readonly seqs: readonly number[];
}

/** The response to a request for an object of another tenant, or to a request without a valid key. */
export interface Knock {
  readonly asked: string;
  readonly expected: number;
  readonly status: number;
}

export interface Limits {
  readonly lanes: Readonly<Record<string, LaneLimits>>;
  /** How many tasks of an agent run at once, in all lanes. */
  readonly agents: Readonly<Record<string, number>>;
  /** How many tasks of a session run at once; 1 for those that are not named. */
  readonly sessions: Readonly<Record<string, number>>;
  /** By the tenant's id; none for those that are not named. */
  readonly tenants?: Readonly<Record<string, TenantBounds>>;
  /** What one tenant may hold of every lane. Left out: as much as there is. */
  readonly laneShare?: LaneShare;
}

export interface LaneShare {
  readonly max: number;
  /** Whether a second enabled tenant existed when the event with this number was written. */
  readonly holdsAt: (seq: number) => boolean;
}

export interface TenantBounds {
  /** How many tasks of it run at once, in all lanes. */
  readonly maxInflight?: number;
  /** How many submitted tasks may wait while it still accepts another one. */
  readonly maxQueued?: number;
}

export interface LaneLimits {
  readonly perNode: number;
  readonly total: number;
  readonly perAgent?: number;
}

export type Acknowledgement =
  /** A task was accepted. `marker` is what its submitter knows it by. */
  | { readonly what: "task"; readonly taskId: string; readonly marker: string }
  /** A message was accepted, by itself or joined to others. */
  | { readonly what: "message"; readonly taskId: string; readonly sessionKey: string; readonly text: string }
  /** A task was cancelled, by itself, with its batch or with its session. */
  | { readonly what: "cancelled"; readonly taskId: string }
  | { readonly what: "retried"; readonly taskId: string }
  | { readonly what: "scheduled"; readonly scheduleId: number }
  /** A callback will be made once more; `after` is how many had been made before that was asked for. */
  | { readonly what: "resent"; readonly deliveryId: string; readonly after: number }
  /** A client read the end of a task. */
  | {
      readonly what: "ended";
      readonly taskId: string;
      readonly state: TerminalState;
      readonly result: unknown;
    };

/** What a client did to a schedule that no other client changes; times are seconds since 1970, as in the responses. */
export type Edit =
  /** It was made, changed or resumed at `at`, and is due at `nextAt` and whole steps from there. */
  | {
      readonly deed: "due";
      readonly scheduleId: number;
      readonly at: number;
      readonly nextAt: number;
      readonly everySec: number;
    }
  | { readonly deed: "paused"; readonly scheduleId: number; readonly at: number }
  /** It was run manually; null: the client does not know whether it was. */
  | { readonly deed: "ran"; readonly scheduleId: number; readonly runId: number | null }
  /** It was deleted before this task was submitted. */
  | { readonly deed: "deleted"; readonly scheduleId: number; readonly before: string };

/** One request that the agents' program got. */
export interface Call {
  readonly taskId: string;
  readonly attempt: number;
  /** The membership that the task says runs it. */
  readonly node: string;
  /** The process that called. */
  readonly process: string;
  /** Places in the order of everything that the program saw; `ended` is null while it has not. */
  readonly began: number;
  readonly ended: number | null;
  /** What the caller must have understood; null: nothing that could be a result. */
  readonly answer: { readonly result: unknown } | null;
  /** The results of its dependencies, as the agent received them. */
  readonly dependencies: readonly DependencyResult[];
}

/** The end of an attempt as its worker reported it, and the response, whether or not it reached the worker. */
export interface Finish {
  readonly taskId: string;
  readonly attempt: number;
  readonly outcome: "done" | "failed" | "released";
  /** What it reported as the result. */
  readonly result: unknown;
  readonly recorded: boolean;
  /** Recorded by an earlier request. */
  readonly repeated: boolean;
}

/** One request that a receiver of callbacks got. */
export interface Callback {
  /** Its `webhook-id`. */
  readonly deliveryId: string;
  readonly url: string;
  readonly event: string;
  /** By its header; null: it has none. */
  readonly taskId: string | null;
  /** Whether its signature verifies. */
  readonly genuine: boolean;
  readonly body: Readonly<Record<string, unknown>>;
  /** The status of the response; null: there was none. */
  readonly answered: number | null;
}

/** A span of time, as positions in the order in which the agents' program saw things. `until` null: it has not ended. */
export interface Span {
  readonly from: number;
  readonly until: number | null;
}

/** A fault that struck a process, and the time it needed to get over it. */
export interface Strike extends Span {
  readonly process: string;
}

/** The faults of a history, a sentence each. */
export type Check = (history: History) => string[];

/** What the submitter of a task wrote into its metadata. */
export interface Marked {
  readonly marker?: string;
  /** How many of its batch may run at once. */
  readonly parallelism?: number;
  /** How long its call takes; left out: as long as chance has it. */
  readonly takesMs?: number;
  /** The URL that gets the end of its batch. */
  readonly batchCallbackUrl?: string;
}

export function markOf(task: Task | undefined): Marked {
  return (task?.metadata ?? {}) as Marked;
}

/** The records that are made during the run. */
export type Mutable<Type> = { -readonly [Key in keyof Type]: Type[Key] };
