import { toSeconds } from "../model/epoch-seconds.ts";
import type { Notification } from "../model/notification.ts";
import type { NotifiedRun, StoredNotification } from "../storage/storage.ts";

/** What users see of a stored notification. */
export function toNotification(stored: StoredNotification): Notification {
  const { seq, kind, scheduleId, agent, run, reason, at } = stored;
  const told = { id: seq, kind, task_id: scheduleId };
  if (run !== null) return { ...told, ...runFields(agent, run), timestamp: toSeconds(at) };
  return {
    ...told,
    agent_id: agent,
    status: kind === "schedule.paused" ? "paused" : "canceled",
    ...(reason === null ? {} : { reason }),
    timestamp: toSeconds(at),
  };
}

function runFields(agent: string, run: NotifiedRun) {
  const { id, status, startedAt, completedAt, resultSummary, error, reason, dueAt, moments } = run;
  return {
    run_id: id,
    agent_id: agent,
    status,
    started_at: toSeconds(startedAt),
    completed_at: toSeconds(completedAt),
    ...(status === "succeeded" ? { result_summary: resultSummary ?? "" } : {}),
    ...(status === "failed" ? { error_message: error ?? "" } : {}),
    ...(reason === null ? {} : { reason }),
    due_at: toSeconds(dueAt),
    moments,
  };
}
