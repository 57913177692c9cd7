/** How a storage shows what happened: one part of the contract in storage.ts. */
import type { EventType } from "../model/event.ts";
import type { TaskState } from "../model/task-state.ts";

/**
 * How many events are written in a millisecond at most, with a margin of ten. A storage that is opened goes on with numbers
 * that lie as far behind its newest event as this allows for: should it be a restored one, no number is handed out again
 * that readers saw before the restore.
 */
export const EVENT_NUMBERS_PER_MS = 100;

export interface EventStorage {
  /**
   * Up to `limit` events after `after`, oldest first; fewer when they take more than `bytesMax` together, but one at
   * least. `more`: there may be others right after them. Never passes over an event that commits later. Events of tasks
   * that are gone, and those that nobody asked for, are left out; no more than `LOOKED_MAX` are looked at in all. Of a
   * tenant's events, those of others are not looked at.
   */
  read(params: ReadEventsParams): Promise<EventPage>;
  /**
   * A page of a tenant's events: oldest first with `after`, else newest first. It holds fewer than `limit` when they take more than
   * `bytesMax` together, one at least, or when `PAGE_LOOKED` is reached first. `next`: the `after` or `before` of the next page; null: there
   * are no more. Events of deleted tasks are left out.
   */
  page(params: PageEventsParams): Promise<{ events: StoredEvent[]; next: number | null }>;
  /**
   * What the event of this number is known by, whether or not its task is gone; null: there is no such event. Between the
   * oldest and the newest, that is a number the log never had: only the oldest are ever deleted.
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
  /** Everything up to this number has been looked at: go on after it. */
  readonly upTo: number;
  /**
   * What `mark` returns for `after`, read no earlier than the events. A reader compares it with what it saw under that
   * number: if they differ, the database was restored to an earlier state and the numbers were handed out again.
   */
  readonly mark: LogMark | null;
}

/**
 * What tells an entry of a log from another that has the same number because the database was restored in between: the
 * later one was written later.
 */
export interface LogMark {
  readonly type: string;
  readonly at: number;
}

/** How many events one call looks at: those of tasks that are gone or that nobody asked for may be any number. */
export const LOOKED_MAX = 2_000;

export interface ReadEventsParams {
  readonly after: number;
  readonly limit: number;
  readonly bytesMax: number;
  /** Left out: of all tenants. */
  readonly filter?: EventFilter;
}

/** Which events of a tenant are asked for; what is left out does not matter. */
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
export const PAGE_LOOKED = { rows: 2_000, filteredRows: 5_000, events: 10_000 } as const;

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
  /** What this type of event adds; see `RotaEvent`. */
  readonly data: EventData | null;
  /** What `result` and `data` take, about. */
  readonly bytes: number;
}

export interface EventData {
  readonly error?: string;
  readonly attempt?: number;
  readonly retryAt?: number;
  readonly progress?: unknown;
  /** With `task.created` and `task.retrying`: where it was put; with `batch.completed`: how its last task ended. */
  readonly state?: TaskState;
  readonly counts?: Readonly<Partial<Record<TaskState, number>>>;
}
