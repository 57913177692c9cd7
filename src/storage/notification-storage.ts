/** Notifications about schedules and workers: one part of the contract in storage.ts. */
import type { ScheduleNotificationKind, WorkerNotificationKind } from "../model/notification.ts";
import type { RunStatus } from "../model/run.ts";
import { WORKERS_MAX } from "../model/worker.ts";
import type { LogMark } from "./event-storage.ts";

/** The log of what schedules, runs and workers did. The transaction that makes a change also writes its notification. */
export interface NotificationStorage {
  /** Up to `limit` after `after`, oldest first: of all tenants, or of one, or of an agent. Those about workers are of no agent. Never skips one that commits later. */
  read(params: ReadNotificationsParams): Promise<NotificationPage>;
  /** As `EventStorage.mark`. Null may also mean that it was deleted with its tenant. */
  mark(params: { seq: number }): Promise<LogMark | null>;
  /** As `EventStorage.lastUntil`. */
  lastUntil(params: { at: number }): Promise<number>;
  /** The highest number there ever was (0: none yet), and the oldest that is still there, or the number after the highest. */
  range(): Promise<{ oldest: number; newest: number }>;
}

export interface ReadNotificationsParams {
  readonly after: number;
  readonly limit: number;
  readonly tenant?: string;
  /** Only with `tenant`. */
  readonly agent?: string;
}

export interface NotificationPage {
  readonly notifications: StoredNotification[];
  /** There may be more after them. */
  readonly more: boolean;
  /** All notifications up to this number are read: continue after it. */
  readonly upTo: number;
  /** What `mark` returns for `after`, read no earlier than the notifications; see `EventPage.mark`. */
  readonly mark: LogMark | null;
}

export type StoredNotification = StoredScheduleNotification | StoredWorkerNotification;

interface StoredEntry {
  readonly seq: number;
  readonly at: number;
  readonly tenant: string;
}

export interface StoredScheduleNotification extends StoredEntry {
  readonly kind: ScheduleNotificationKind;
  readonly scheduleId: number;
  readonly agent: string;
  /** The run as it was at that time; null: the notification is about the schedule. */
  readonly run: NotifiedRun | null;
  /** Of a schedule: why it was paused. */
  readonly reason: string | null;
  readonly worker?: never;
}

/**
 * Only the newest `WORKER_NOTIFICATIONS_MAX` of a tenant are kept: each new one deletes the oldest beyond that. A key of a worker
 * that registers and deletes workers in a loop must not fill the disk.
 */
export interface StoredWorkerNotification extends StoredEntry {
  readonly kind: WorkerNotificationKind;
  /** The worker as it was at that time. */
  readonly worker: NotifiedWorker;
  readonly reason: string | null;
  readonly scheduleId?: never;
  readonly agent?: never;
  readonly run?: never;
}

/** All workers of an installation may be lost and come back. */
export const WORKER_NOTIFICATIONS_MAX = 2 * WORKERS_MAX;

export interface NotifiedRun {
  readonly id: number;
  readonly status: RunStatus;
  readonly dueAt: number;
  readonly moments: number;
  readonly reason: string | null;
  readonly startedAt: number | null;
  readonly completedAt: number | null;
  readonly resultSummary: string | null;
  readonly error: string | null;
}

export interface NotifiedWorker {
  readonly id: string;
  readonly name: string;
  readonly agents: readonly string[];
  readonly slots: number;
  /** How many attempts it held when it was lost; null: it was not lost. */
  readonly attempts: number | null;
}

/** Drivers keep notifications about workers in the same table, with this schedule and agent, which do not exist. */
export const OF_WORKER = { schedule: 0, agent: "" } as const;
/** The reason of `worker.registered` if the worker was lost. */
export const WORKER_BACK = "it was lost";
/** The reason of `worker.lost`; the lease follows, as in `15000 ms`. */
export const SILENT_FOR = "no sign of life for ";
