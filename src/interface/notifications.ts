import type { Notification } from "../model/notification.ts";

export type { Notification, ScheduleNotification, WorkerNotification } from "../model/notification.ts";

/** One notification after the other. */
export interface Notifications extends AsyncIterableIterator<Notification, undefined> {
  /** Resolves once the reader will get every notification from then on; rejects if that is impossible. */
  readonly ready: Promise<void>;
  /** Pass it as `after` to continue from here later. Undefined before `ready`. */
  readonly position: number | undefined;
}

export interface NotificationsOptions {
  /** The `id` of the last one seen; 0: all that are stored; left out: from now on. */
  readonly after?: number;
  /** Ends the iteration. */
  readonly signal?: AbortSignal;
  /** Called before the first one if some after `after` have been deleted, and at any time if the database was restored. */
  readonly onGap?: (gap: { readonly after: number; readonly oldest: number }) => void;
}
