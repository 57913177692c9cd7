import type { AttemptRecord } from "./task-record.ts";

/** `not_polling`: it gives signs of life, but no longer asks for tasks although it has free slots. */
export const WORKER_STATES = ["idle", "busy", "draining", "not_polling", "lost"] as const;
export type WorkerState = (typeof WORKER_STATES)[number];

/** The ids of workers begin with this, the ids of nodes do not. */
export const WORKER_ID_PREFIX = "wrk_";

/** Whether the holder of an attempt is a worker. An attempt that was handed to one may have begun before the worker says so. */
export function isWorker(holder: string): boolean {
  return holder.startsWith(WORKER_ID_PREFIX);
}

/** Why an attempt of a worker is over, or should end. */
export const ATTEMPT_REASONS = [
  "cancelled",
  "timeout",
  "deadline",
  "preempted",
  "session_stopped",
  "paused",
  "watchdog",
  "budget",
  "released",
  "fenced",
  "unknown",
] as const;
export type AttemptReason = (typeof ATTEMPT_REASONS)[number];

/** What a worker learns at once by its stream of signals. The next heartbeat says the same. */
export type WorkerSignal =
  | {
      readonly type: "cancel";
      readonly taskId: string;
      /** Of the attempt. */
      readonly number: number;
      readonly cancel: AttemptReason;
    }
  | { readonly type: "drain" };

/** How a worker says that an attempt ended. */
export const WORKER_OUTCOMES = ["done", "failed", "released"] as const;
export type WorkerOutcome = (typeof WORKER_OUTCOMES)[number];

/** A lease must be longer than signs of life take to be written. */
export const WORKER_LEASE_MS = { min: 3_000, max: 120_000, default: 15_000 } as const;
export const WORKER_HEARTBEAT_MS = { min: 500, default: 5_000 } as const;
export const WORKER_SLOTS_MAX = 1_000;
/** How many live workers there may be, of all tenants, and how many of one tenant once there is a second one. */
export const WORKERS_MAX = 1_000;
export const TENANT_WORKERS_MAX = WORKERS_MAX / 2;
/** How many live workers a tenant may have in any case: those of others never keep its first ones out. */
export const TENANT_WORKERS_MIN = 10;
/** How many agents a worker, or a key of the role `worker`, may name. */
export const WORKER_AGENTS_MAX = 100;
/** The longest wait of a claim: proxies cut connections after 30 or 60 seconds. */
export const CLAIM_WAIT_S_MAX = 25;
/** How many attempts one request may name. */
export const ATTEMPTS_PER_REQUEST_MAX = 100;
/** The most bytes of progress and log lines in one heartbeat. */
export const REPORT_BYTES_MAX = 65_536;
/** The most bytes of one response to a claim. */
export const CLAIM_BYTES_MAX = 8 * 1_048_576;

/** The longest pause before the next attempt that a finish may ask for. */
export const RETRY_AFTER_MS_MAX = 86_400_000;

/** The error of an attempt that its worker released. */
export const RELEASED = "released by its worker";
/** The error of an attempt whose worker is gone. */
export const WORKER_LOST = "worker lost";

/** How long a worker with free slots may not ask for tasks before it counts as `not_polling`. */
export const NOT_POLLING_MS = 30_000;

/**
 * Which limit keeps another live worker out; null: none. `all`, `own`: how many there are, of all tenants and of its own. `isShared`:
 * there is a second enabled tenant.
 */
export function workersFull({ all, own, isShared }: LiveWorkers): "installation" | "tenant" | null {
  if (own < TENANT_WORKERS_MIN) return null;
  if (all >= WORKERS_MAX) return "installation";
  return isShared && own >= TENANT_WORKERS_MAX ? "tenant" : null;
}

export interface LiveWorkers {
  readonly all: number;
  readonly own: number;
  readonly isShared: boolean;
}

export interface WorkerActivity {
  readonly lost: boolean;
  readonly draining: boolean;
  readonly held: number;
  readonly slots: number;
  readonly registeredAt: number;
  readonly polledAt: number | null;
}

export function workerState(worker: WorkerActivity, now: number): WorkerState {
  if (worker.lost) return "lost";
  if (worker.draining) return "draining";
  const asked = Math.max(worker.registeredAt, worker.polledAt ?? 0);
  if (worker.held < worker.slots && now - asked > NOT_POLLING_MS) return "not_polling";
  return worker.held > 0 ? "busy" : "idle";
}

/** What stops a session, or parts of it. */
const SESSION_STOPS = new Set(["stopped", "stale", "interrupted", "session_reset"]);

/** How an attempt ended. */
export type AttemptEnd = Pick<AttemptRecord, "outcome" | "error">;

/** Why an attempt no longer holds its task. Null: the task is deleted. */
export function endOfAttempt(end: AttemptEnd | null): AttemptReason {
  if (end === null) return "unknown";
  const { outcome, error } = end;
  switch (outcome) {
    case "preempted":
      return "preempted";
    case "cancelled":
      return SESSION_STOPS.has(error ?? "") ? "session_stopped" : "cancelled";
    case "failed":
      if (error?.startsWith("timed out after ")) return "timeout";
      return error === "deadline exceeded" ? "deadline" : "fenced";
    case "lost":
      return error === RELEASED ? "released" : "fenced";
    default:
      return "fenced";
  }
}
