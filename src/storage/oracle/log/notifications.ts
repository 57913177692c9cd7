import type { ScheduleNotificationKind, WorkerNotificationKind } from "../../../model/notification.ts";
import {
  type LogMark,
  type NotificationPage,
  type ReadNotificationsParams,
  type StoredScheduleNotification,
  type StoredWorkerNotification,
  WORKER_NOTIFICATIONS_MAX,
} from "../../storage.ts";
import {
  type OracleRun,
  type OracleSchedule,
  type OracleState,
  type OracleWorker,
  signal,
} from "../state.ts";

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
  kind: ScheduleNotificationKind,
  { tenant, id: scheduleId, agent }: OracleSchedule,
  reason: string | null,
): void {
  add(state, { tenant, kind, scheduleId, agent, run: null, reason });
}

/** Writes a notification of a run as it is now. */
export function notifyOfRun(state: OracleState, kind: ScheduleNotificationKind, run: OracleRun): void {
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

/** `attempts`: how many it held when it was lost. */
export function notifyOfWorker(
  state: OracleState,
  kind: WorkerNotificationKind,
  { tenant, id, name, agents, slots }: OracleWorker,
  { reason, attempts }: { reason: string | null; attempts: number | null },
): void {
  add(state, { tenant, kind, worker: { id, name, agents, slots, attempts }, reason });
  const kept = state.notifications
    .filter((each) => each.tenant === tenant && each.worker !== undefined)
    .slice(-WORKER_NOTIFICATIONS_MAX);
  const oldest = kept[0]?.seq ?? 0;
  state.notifications = state.notifications.filter(
    (each) => each.tenant !== tenant || each.worker === undefined || each.seq >= oldest,
  );
}

type New = Omit<StoredScheduleNotification, "seq" | "at"> | Omit<StoredWorkerNotification, "seq" | "at">;

function add(state: OracleState, notification: New): void {
  state.lastNotificationSeq += 1;
  state.notifications.push({ seq: state.lastNotificationSeq, at: state.clock.now(), ...notification });
  signal(state, { kind: "notifications" });
}
