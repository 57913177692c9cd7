/** The event log: one part of the contract in storage.ts. */
import type { EventType } from "../model/event.ts";
import type { TaskState } from "../model/task-state.ts";

/**
 * How many events are written per millisecond at most, with a margin of ten. When a storage is opened, it skips this many
 * numbers for each millisecond since its newest event. If the database was restored from a backup, no number that readers saw
 * before the restore is used again.
 */
export const EVENT_NUMBERS_PER_MS = 100;

export interface EventStorage {
  /**
   * Up to `limit` events after `after`, oldest first; fewer when they take more than `bytesMax` together, but one at least.
   * `more`: there may be others right after them. Never skips an event that commits later. Events of deleted tasks, and those
   * that do not match the filter, are left out. One call reads `LOOKED_MAX` events at most; with a filter, those of other
   * tenants are not read and do not count.
   */
  read(params: ReadEventsParams): Promise<EventPage>;
  /**
   * A page of a tenant's events: oldest first with `after`, else newest first. It holds fewer than `limit` if they take more
   * than `bytesMax` together (but one at least), or if `PAGE_LOOKED` is reached first. `next`: the `after` or `before` of the
   * next page; null: there are no more. Events of deleted tasks are left out.
   */
  page(params: PageEventsParams): Promise<{ events: StoredEvent[]; next: number | null }>;
  /**
   * Identifies the event of this number, even if its task is deleted; null: there is no such event. Null for a number between
   * the oldest and the newest means that the log never had it: only the oldest events are ever deleted.
   */
  mark(params: { seq: number }): Promise<LogMark | null>;
  /** The number of the last event that was written no later than `at`; 0: none. */
  lastUntil(params: { at: number }): Promise<number>;
  /**
   * How far the log reaches: the highest number there ever was (0: none yet), and the oldest event that is still there,
   * or the number after the highest when there is none.
   */
  range(): Promise<{ oldest: number; newest: number }>;
}

export interface EventPage {
  readonly events: StoredEvent[];
  readonly more: boolean;
  /** All events up to this number are read: continue after it. */
  readonly upTo: number;
  /**
   * What `mark` returns for `after`, read no earlier than the events. A reader compares it with what it saw under that number:
   * if they differ, the database was restored to an earlier state and numbers were used again.
   */
  readonly mark: LogMark | null;
}

/** Distinguishes two log entries that have the same number because the database was restored in between: their times differ. */
export interface LogMark {
  readonly type: string;
  readonly at: number;
}

/** How many events one call reads. Any number of them may be of deleted tasks or not match the filter. */
export const LOOKED_MAX = 2_000;

export interface ReadEventsParams {
  readonly after: number;
  readonly limit: number;
  readonly bytesMax: number;
  /** Left out: of all tenants. */
  readonly filter?: EventFilter;
}

/** Selects events of a tenant; a field that is left out matches all. */
export interface EventFilter {
  readonly tenant: string;
  readonly agent?: string | undefined;
  readonly batch?: string | undefined;
  /** The key of a session. */
  readonly session?: string | undefined;
  readonly schedule?: number | undefined;
}

/**
 * How much of the log one page reads: rows, each of which holds the same event of one or more tasks, and events in the rows that
 * match. With a filter most rows do not match, and cost little.
 */
export const PAGE_LOOKED = { rows: 2_000, filteredRows: 3_000, events: 10_000 } as const;

/**
 * For one task, the log is read from the time of its creation to that of its end, with this margin on both sides. So no event is
 * missed if a clock was set back by up to this much.
 */
export const TASK_SPAN_ROOM_MS = 60_000;

export interface PageEventsParams {
  readonly tenant: string;
  /** Only those with a higher number. */
  readonly after?: number | undefined;
  /** Only those with a lower number. */
  readonly before?: number | undefined;
  readonly type?: EventType | undefined;
  readonly taskId?: string | undefined;
  readonly limit: number;
  readonly bytesMax: number;
}

export interface StoredEvent {
  readonly seq: number;
  readonly type: EventType;
  readonly at: number;
  readonly tenant: string;
  readonly taskId: string;
  readonly agent: string;
  readonly lane: string;
  readonly batch: string | null;
  /** The key of its session. */
  readonly session: string | null;
  /** The schedule that it is a run of. */
  readonly schedule: number | null;
  readonly state: TaskState;
  /** Only with `task.completed`. */
  readonly result: unknown;
  /** The fields of this type of event; see `RotaEvent`. */
  readonly data: EventData | null;
  /** About how many bytes `result` and `data` take. */
  readonly bytes: number;
}

export interface EventData {
  readonly error?: string;
  readonly attempt?: number;
  readonly retryAt?: number;
  readonly progress?: unknown;
  /** With `task.created` and `task.retrying`: the new state; with `batch.completed`: the final state of its last task. */
  readonly state?: TaskState;
  readonly counts?: Readonly<Partial<Record<TaskState, number>>>;
}
