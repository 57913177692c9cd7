import type { Run, ScheduledTask } from "../interface/schedules.ts";
import { toSeconds } from "../model/epoch-seconds.ts";
import { scheduleKind } from "../model/rule.ts";
import type { RunRecord, ScheduleRecord } from "../storage/storage.ts";

/** What users see of a schedule. */
export function toScheduledTask(record: ScheduleRecord): ScheduledTask {
  const { rule, retryPolicy, status, usefulForMs } = record;
  return {
    id: record.id,
    name: record.name,
    agent_id: record.agent,
    conversation_id: record.conversationId,
    session_key: record.sessionKey,
    message: record.message,
    schedule_phrase: record.phrase,
    schedule_kind: scheduleKind(rule),
    fire_at: rule.kind === "once" ? toSeconds(rule.atMs) : 0,
    recur_json: rule.kind === "once" ? null : JSON.stringify(rule),
    tz: rule.tz,
    next_fire_at: toSeconds(record.nextFireAt),
    status,
    enabled: status === "active",
    delete_after_run: record.deleteAfterRun,
    retry: {
      max_retries: retryPolicy.maxRetries,
      base_delay_ms: retryPolicy.backoffMs,
      max_delay_ms: retryPolicy.maxBackoffMs,
    },
    overlap: record.overlap,
    catch_up: record.catchUp,
    useful_for: usefulForMs === null ? null : usefulForMs / 1_000,
    timeout: record.timeoutMs,
    created_at: toSeconds(record.createdAt),
    updated_at: toSeconds(record.updatedAt),
    last_run_at: toSeconds(record.lastRunAt),
    last_run_id: record.lastRunId ?? 0,
    run_count: record.runCount,
    last_status: record.lastStatus,
    last_error: record.lastError,
  };
}

/** What users see of a run. */
export function toRun(record: RunRecord): Run {
  return {
    id: record.id,
    task_id: record.scheduleId,
    agent_id: record.agent,
    queue_task_id: record.taskId,
    due_at: toSeconds(record.dueAt),
    moments: record.moments,
    status: record.status,
    reason: record.reason,
    started_at: toSeconds(record.startedAt),
    completed_at: toSeconds(record.completedAt),
    request_id: record.requestId,
    result_summary: record.resultSummary,
    error_message: record.error,
    input_tokens: record.inputTokens,
    output_tokens: record.outputTokens,
    attempt: record.attempt,
  };
}
