/** Notifications about schedules: one part of the contract in storage.ts. */
import type { RunStatus } from "../model/run.ts";
import type { NotificationKind } from "../model/schedule.ts";
import type { LogMark } from "./event-storage.ts";

/** The log of what schedules and runs did. The transaction that makes a change also writes its notification. */
export interface NotificationStorage {
  /** Up to `limit` after `after`, oldest first: of all tenants, or of one, or of an agent. Never skips one that commits later. */
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

export interface StoredNotification {
  readonly seq: number;
  readonly at: number;
  readonly tenant: string;
  readonly kind: NotificationKind;
  readonly scheduleId: number;
  readonly agent: string;
  /** The run as it was at that time; null: the notification is about the schedule. */
  readonly run: NotifiedRun | null;
  /** Of a schedule: why it was paused. */
  readonly reason: string | null;
}

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
