import type {
  Notification,
  ScheduleNotification,
  WorkerNotification,
} from "../../interface/notifications.ts";
import { oneLine } from "../terminal/display-text.ts";

/** One line for one notification: time, type, then the schedule and run, or the worker, with details. */
export function notificationLine(notification: Notification): string {
  const { kind, timestamp } = notification;
  const when = new Date(timestamp * 1_000).toISOString().replace(".000Z", "Z");
  const about =
    notification.worker_id === undefined ? wordsOfSchedule(notification) : wordsOfWorker(notification);
  return [when, kind, ...about].filter((word) => word !== "").join("  ");
}

function wordsOfSchedule(notification: ScheduleNotification): string[] {
  const { task_id, run_id, agent_id } = notification;
  const run = run_id === undefined ? "" : `run ${run_id}`;
  return [`#${task_id}`, run, oneLine(agent_id), detailsOf(notification)];
}

function wordsOfWorker({
  worker_id,
  name,
  agents,
  slots,
  attempts,
  reason = "",
}: WorkerNotification): string[] {
  const size = attempts === undefined ? `${slots} slots` : `held ${attempts} of ${slots} slots`;
  return [worker_id, oneLine(name), oneLine(agents.join(",")), size, oneLine(reason)];
}

function detailsOf({ error_message, reason, result_summary, moments = 1 }: ScheduleNotification): string {
  const text = error_message ?? reason ?? result_summary ?? "";
  return oneLine(moments > 1 ? `for ${moments} due times: ${text}` : text);
}
