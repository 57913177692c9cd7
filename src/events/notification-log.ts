import type { Notification } from "../model/notification.ts";
import type { Redactor } from "../model/redactor.ts";
import type { Storage } from "../storage/storage.ts";
import type { EventSourceParams } from "./event-log.ts";
import { FollowedLog, type FollowedLogOptions, type LogSource } from "./followed-log.ts";
import { LogReader, type LogReaderOptions } from "./log-reader.ts";
import { toNotification } from "./to-notification.ts";

/** Notifications per page: the summary of a result takes four kibibytes at most. */
const PAGE_LIMIT = 200;
/** The bytes of a notification besides its texts. */
const FIELDS_BYTES = 256;

/** A notification and its tenant. */
interface TenantNotification {
  readonly tenant: string;
  readonly notification: Notification;
}

/** The notifications of schedules and runs, of all tenants. */
export class NotificationLog extends FollowedLog<TenantNotification> {
  readonly storage: Storage;
  readonly redactor: () => Redactor;

  constructor({ storage, redactor, ...others }: FollowedLogOptions & EventSourceParams) {
    super(notificationSource({ storage, redactor }), others);
    this.storage = storage;
    this.redactor = redactor;
  }
}

/** One reader of the notifications of a tenant. */
export class NotificationReader extends LogReader<TenantNotification, Notification> {
  constructor(log: NotificationLog, { tenant, ...options }: LogReaderOptions & { readonly tenant: string }) {
    const source = notificationSource(log, tenant);
    super(log, (entry) => (entry.tenant === tenant ? entry.notification : undefined), options, source);
  }
}

/** Of all tenants, or of one. */
function notificationSource(
  { storage: { notifications }, redactor }: EventSourceParams,
  tenant?: string,
): LogSource<TenantNotification> {
  return {
    name: "notifications",
    // Deleting a tenant deletes its notifications, also between those of others.
    leavesHoles: true,
    range: () => notifications.range(),
    mark: (seq) => notifications.mark({ seq }),
    lastUntil: (at) => notifications.lastUntil({ at }),
    async read(after) {
      const { notifications: stored, ...page } = await notifications.read({
        after,
        limit: PAGE_LIMIT,
        ...(tenant === undefined ? {} : { tenant }),
      });
      const shown = redactor();
      const entries = stored.map((each) => ({
        seq: each.seq,
        value: { tenant: each.tenant, notification: toNotification(each, shown) },
        bytes: FIELDS_BYTES + 2 * textLength(each),
        mark: { type: each.kind, at: each.at },
      }));
      return { entries, looked: entries.length, ...page };
    },
  };
}

function textLength({ run, reason }: Parameters<typeof toNotification>[0]): number {
  const texts = [reason, run?.reason, run?.error, run?.resultSummary];
  return texts.reduce((sum, text) => sum + (text?.length ?? 0), 0);
}
