import type { Notification } from "../../interface/notifications.ts";
import { oneLine } from "../terminal/display-text.ts";

/** One line for one notification: time, type, schedule and run, agent, details. */
export function notificationLine(notification: Notification): string {
  const { kind, task_id, run_id, agent_id, timestamp } = notification;
  const when = new Date(timestamp * 1_000).toISOString().replace(".000Z", "Z");
  const run = run_id === undefined ? "" : `run ${run_id}`;
  const words = [when, kind, `#${task_id}`, run, oneLine(agent_id), detailsOf(notification)];
  return words.filter((word) => word !== "").join("  ");
}

function detailsOf({ error_message, reason, result_summary, moments = 1 }: Notification): string {
  const text = error_message ?? reason ?? result_summary ?? "";
  return oneLine(moments > 1 ? `for ${moments} moments: ${text}` : text);
}
