import type {
  NotificationKind,
  ScheduleNotificationKind,
  WorkerNotificationKind,
} from "../../../../model/notification.ts";
import {
  type NotifiedRun,
  type NotifiedWorker,
  OF_WORKER,
  WORKER_NOTIFICATIONS_MAX,
} from "../../../storage.ts";
import type { Transaction } from "../../connection/transaction.ts";
import type { RunRow } from "../../schedules/run-row.ts";

/** A row of `notification`. */
export interface NotificationRow {
  readonly seq: number;
  readonly at: number;
  readonly tenant: string;
  readonly kind: NotificationKind;
  readonly schedule: number;
  readonly agent: string;
  /** JSON: a run, or a worker. */
  readonly run: string | null;
  readonly reason: string | null;
}

/** Adds a notification about a schedule. */
export function notifyOfSchedule(
  tx: Transaction,
  kind: ScheduleNotificationKind,
  { tenant, id, agent, reason }: { tenant: string; id: number; agent: string; reason: string | null },
): void {
  add(tx, { at: tx.now, tenant, kind, schedule: id, agent, run: null, reason });
}

/** Adds a notification about a run as it is now. */
export function notifyOfRun(tx: Transaction, kind: ScheduleNotificationKind, row: RunRow): void {
  const run: NotifiedRun = {
    id: row.id,
    status: row.status,
    dueAt: row.due_at,
    moments: row.moments,
    reason: row.reason,
    startedAt: row.started_at,
    completedAt: row.completed_at,
    resultSummary: row.result_summary,
    error: row.error,
  };
  const { tenant, schedule, agent } = row;
  add(tx, { at: tx.now, tenant, kind, schedule, agent, run: JSON.stringify(run), reason: null });
}

/** Adds a notification about a worker, and deletes the oldest of its tenant beyond `WORKER_NOTIFICATIONS_MAX`. */
export function notifyOfWorker(
  tx: Transaction,
  kind: WorkerNotificationKind,
  { tenant, worker, reason }: { tenant: string; worker: NotifiedWorker; reason: string | null },
): void {
  add(tx, { at: tx.now, tenant, kind, ...OF_WORKER, run: JSON.stringify(worker), reason });
  tx.prepare(
    `delete from notification where seq in (
       select seq from notification indexed by notification_by_agent
        where tenant = @tenant and agent = @agent order by seq desc limit -1 offset +@max)`,
  ).run({ tenant, agent: OF_WORKER.agent, max: WORKER_NOTIFICATIONS_MAX });
}

function add(tx: Transaction, row: Omit<NotificationRow, "seq">): void {
  tx.prepare(
    `insert into notification (at, tenant, kind, schedule, agent, run, reason)
     values (@at, @tenant, @kind, @schedule, @agent, @run, @reason)`,
  ).run(row);
  tx.signal("notifications");
}
