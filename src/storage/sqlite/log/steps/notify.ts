import type { NotificationKind } from "../../../../model/schedule.ts";
import type { NotifiedRun } from "../../../storage.ts";
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
  readonly run: string | null;
  readonly reason: string | null;
}

/** Adds a notification about a schedule. */
export function notifyOfSchedule(
  tx: Transaction,
  kind: NotificationKind,
  { tenant, id, agent, reason }: { tenant: string; id: number; agent: string; reason: string | null },
): void {
  add(tx, { at: tx.now, tenant, kind, schedule: id, agent, run: null, reason });
}

/** Adds a notification about a run as it is now. */
export function notifyOfRun(tx: Transaction, kind: NotificationKind, row: RunRow): void {
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

function add(tx: Transaction, row: Omit<NotificationRow, "seq">): void {
  tx.prepare(
    `insert into notification (at, tenant, kind, schedule, agent, run, reason)
     values (@at, @tenant, @kind, @schedule, @agent, @run, @reason)`,
  ).run(row);
  tx.signal("notifications");
}
