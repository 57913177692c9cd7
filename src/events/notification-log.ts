import type { Notification } from "../model/notification.ts";
import type { Redactor } from "../model/redactor.ts";
import type { Scope } from "../model/scope.ts";
import type { Storage } from "../storage/storage.ts";
import type { EventSourceParams } from "./event-log.ts";
import { FollowedLog, type FollowedLogOptions } from "./followed-log.ts";
import { LogReader, type LogReaderOptions } from "./log-reader.ts";
import type { LogSource } from "./log-source.ts";
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

/** The notifications of schedules, runs and workers, of all tenants. */
export class NotificationLog extends FollowedLog<TenantNotification> {
  readonly storage: Storage;
  readonly redactor: () => Redactor;

  constructor({ storage, redactor, ...others }: FollowedLogOptions & EventSourceParams) {
    super(notificationSource({ storage, redactor }), others);
    this.storage = storage;
    this.redactor = redactor;
  }
}

/** One reader of the notifications of a tenant or an agent. Those of workers are of no agent. */
export class NotificationReader extends LogReader<TenantNotification, Notification> {
  constructor(log: NotificationLog, scope: Scope, options: LogReaderOptions) {
    const { tenant, agent } = scope;
    const fits = (entry: TenantNotification) =>
      entry.tenant === tenant && (agent === undefined || entry.notification.agent_id === agent);
    super(
      log,
      (entry) => (fits(entry) ? entry.notification : undefined),
      options,
      notificationSource(log, scope),
    );
  }
}

/** Of all tenants, or within a scope. */
function notificationSource(
  { storage: { notifications }, redactor }: EventSourceParams,
  scope: Partial<Scope> = {},
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
        ...scope,
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

function textLength({ run, worker, reason }: Parameters<typeof toNotification>[0]): number {
  const texts = [
    reason,
    run?.reason,
    run?.error,
    run?.resultSummary,
    worker?.name,
    ...(worker?.agents ?? []),
  ];
  return texts.reduce((sum, text) => sum + (text?.length ?? 0), 0);
}
