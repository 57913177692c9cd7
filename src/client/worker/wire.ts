import type { UsageSum } from "../../attempts/usage-sum.ts";
import type { Task } from "../../model/task.ts";
import type { TaskLogLevel } from "../../model/task-log.ts";

/**
 * The worker protocol, as docs/workers-protocol.md describes it. What a server leaves out is optional here, so that a worker
 * never ends because of one.
 */

export interface RegisterRequest {
  readonly name: string;
  /** The same id: the same worker. */
  readonly instanceId: string;
  readonly agents: readonly string[];
  readonly slots: number;
  readonly labels?: Readonly<Record<string, string>>;
  readonly version?: string;
  readonly runtime?: string;
  readonly leaseMs?: number;
  readonly heartbeatMs?: number;
}

export interface Registration {
  readonly workerId: string;
  readonly leaseMs: number;
  readonly heartbeatMs: number;
  readonly maxWaitS: number;
}

export interface ClaimRequest {
  /** Repeated with the same id, a claim returns the same attempts. */
  readonly claimId: string;
  readonly max: number;
  readonly waitS: number;
}

export interface ClaimAnswer {
  readonly attempts?: readonly ClaimedAttempt[];
  readonly drain?: boolean;
  readonly retryInMs?: number;
}

export interface ClaimedAttempt {
  readonly attemptToken: string;
  readonly number: number;
  readonly timeoutMs?: number | null;
  readonly deadlineInMs?: number | null;
  readonly tenantId?: string;
  readonly contextWindow?: number;
  /** What the task is about. Fields that only Rota needs may be left out. */
  readonly task: Pick<Task, "taskId" | "agentId" | "kind"> & Partial<Task>;
}

export interface HeartbeatAttempt {
  readonly attemptToken: string;
  readonly progress?: unknown;
  readonly usage?: UsageSum;
  readonly log?: readonly WireLogLine[];
}

export interface WireLogLine {
  /** RFC 3339, by the clock of the worker: for readers only. */
  readonly at: string;
  readonly level: TaskLogLevel;
  readonly text: string;
}

export interface HeartbeatAnswer {
  readonly attempts?: readonly {
    readonly attemptToken: string;
    readonly ok: boolean;
    readonly cancel?: string;
  }[];
  readonly drain?: boolean;
}

export interface FinishAttempt {
  readonly attemptToken: string;
  readonly outcome: "done" | "failed" | "released";
  readonly result?: unknown;
  readonly error?: string;
  readonly retryable?: boolean;
  readonly retryAfterMs?: number;
  readonly usage?: UsageSum;
}

export interface FinishAnswer {
  readonly attempts?: readonly {
    readonly attemptToken: string;
    readonly recorded: boolean;
    readonly repeated?: boolean;
    readonly reason?: string;
  }[];
}
