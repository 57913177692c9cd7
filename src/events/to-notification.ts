import type { Notification } from "../model/notification.ts";
import type { Redactor } from "../model/redactor.ts";
import { toSeconds } from "../model/text/epoch-seconds.ts";
import type { NotifiedRun, NotifiedWorker, StoredNotification } from "../storage/storage.ts";

/** The public view of a stored notification, with secrets masked. */
export function toNotification(stored: StoredNotification, redactor: Redactor): Notification {
  if (stored.worker !== undefined) {
    const { seq, kind, worker, reason, at } = stored;
    return {
      ...{ id: seq, kind, ...workerFields(worker) },
      ...(reason === null ? {} : { reason }),
      timestamp: toSeconds(at),
    };
  }
  const { seq, kind, scheduleId, agent, run, reason, at } = stored;
  const common = { id: seq, kind, task_id: scheduleId };
  if (run !== null) return { ...common, ...runFields(agent, run, redactor), timestamp: toSeconds(at) };
  return {
    ...common,
    agent_id: agent,
    status: kind === "schedule.paused" ? "paused" : "canceled",
    ...(reason === null ? {} : { reason }),
    timestamp: toSeconds(at),
  };
}

function workerFields({ id, name, agents, slots, attempts }: NotifiedWorker) {
  return { worker_id: id, name, agents, slots, ...(attempts === null ? {} : { attempts }) };
}

function runFields(agent: string, run: NotifiedRun, redactor: Redactor) {
  const { id, status, startedAt, completedAt, resultSummary, error, reason, dueAt, moments } = run;
  return {
    run_id: id,
    agent_id: agent,
    status,
    started_at: toSeconds(startedAt),
    completed_at: toSeconds(completedAt),
    ...(status === "succeeded" ? { result_summary: redactor.text(resultSummary ?? "") } : {}),
    ...(status === "failed" ? { error_message: redactor.text(error ?? "") } : {}),
    ...(reason === null ? {} : { reason }),
    due_at: toSeconds(dueAt),
    moments,
  };
}
