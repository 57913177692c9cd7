import type { Notification } from "../model/notification.ts";

export type { Notification } from "../model/notification.ts";

/** One notification after the other. */
export interface Notifications extends AsyncIterableIterator<Notification, undefined> {
  /** Resolves once everything that happens from then on will be handed out; rejects when that cannot be. */
  readonly ready: Promise<void>;
  /** What to give as `after` to go on from here later. Undefined before `ready`. */
  readonly position: number | undefined;
}

export interface NotificationsOptions {
  /** The `id` of the last one seen; 0 for all there are; left out: from now on. */
  readonly after?: number;
  /** Ends the iteration. */
  readonly signal?: AbortSignal;
  /** Called before the first one if some after `after` have been deleted, and at any time if the database was restored. */
  readonly onGap?: (gap: { readonly after: number; readonly oldest: number }) => void;
}
