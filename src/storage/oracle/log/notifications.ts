import type { NotificationKind } from "../../../model/schedule.ts";
import type {
  LogMark,
  NotificationPage,
  ReadNotificationsParams,
  StoredNotification,
} from "../../storage.ts";
import { type OracleRun, type OracleSchedule, type OracleState, signal } from "../state.ts";

export function readNotifications(
  state: OracleState,
  { after, limit, tenant, agent }: ReadNotificationsParams,
): NotificationPage {
  const all = state.notifications.filter(
    (each) =>
      each.seq > after &&
      (tenant === undefined || each.tenant === tenant) &&
      (agent === undefined || each.agent === agent),
  );
  const notifications = all.slice(0, limit);
  const more = all.length > limit;
  const newest = tenant === undefined || more ? 0 : (state.notifications.at(-1)?.seq ?? 0);
  return {
    notifications,
    more,
    upTo: Math.max(notifications.at(-1)?.seq ?? after, newest),
    mark: notificationMark(state, { seq: after }),
  };
}

export function notificationMark(state: OracleState, { seq }: { seq: number }): LogMark | null {
  const found = state.notifications.find((candidate) => candidate.seq === seq);
  return found === undefined ? null : { type: found.kind, at: found.at };
}

export function lastNotificationUntil(state: OracleState, { at }: { at: number }): number {
  return state.notifications.findLast((notification) => notification.at <= at)?.seq ?? 0;
}

export function notificationRange(state: OracleState): { oldest: number; newest: number } {
  const newest = state.lastNotificationSeq;
  return { oldest: state.notifications[0]?.seq ?? newest + 1, newest };
}

export function notifyOfSchedule(
  state: OracleState,
  kind: NotificationKind,
  { tenant, id: scheduleId, agent }: OracleSchedule,
  reason: string | null,
): void {
  add(state, { tenant, kind, scheduleId, agent, run: null, reason });
}

/** Writes a notification of a run as it is now. */
export function notifyOfRun(state: OracleState, kind: NotificationKind, run: OracleRun): void {
  const { tenant, scheduleId, agent, id, status, dueAt, moments, reason } = run;
  const { startedAt, completedAt, resultSummary, error } = run;
  add(state, {
    tenant,
    kind,
    scheduleId,
    agent,
    run: { id, status, dueAt, moments, reason, startedAt, completedAt, resultSummary, error },
    reason: null,
  });
}

function add(state: OracleState, notification: Omit<StoredNotification, "seq" | "at">): void {
  state.lastNotificationSeq += 1;
  state.notifications.push({ seq: state.lastNotificationSeq, at: state.clock.now(), ...notification });
  signal(state, { kind: "notifications" });
}
