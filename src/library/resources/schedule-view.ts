import type { Run, ScheduledTask } from "../../interface/schedules.ts";
import type { Redactor } from "../../model/redactor.ts";
import { scheduleKind } from "../../model/rule.ts";
import { toSeconds } from "../../model/text/epoch-seconds.ts";
import type { RunRecord, ScheduleRecord } from "../../storage/storage.ts";

/** The public view of a schedule, with secrets masked. */
export function toScheduledTask(record: ScheduleRecord, redactor: Redactor): ScheduledTask {
  const { rule, retryPolicy, status, usefulForMs, work } = record;
  return {
    id: record.id,
    name: record.name,
    agent_id: record.agent,
    conversation_id: record.conversationId,
    session_key: record.sessionKey,
    ...(record.postToSession ? { post_to_session: true } : {}),
    message: work.kind === "message" ? work.message : null,
    ...(work.kind === "instruction" ? { instruction: work.instruction } : {}),
    ...(work.kind === "custom" ? { payload: redactor.json(work.payload) } : {}),
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
    ...(record.lane === null ? {} : { lane: record.lane }),
    ...(record.priority === null ? {} : { priority: record.priority }),
    ...(record.metadata === null ? {} : { metadata: redactor.json(record.metadata) }),
    ...(record.callbackUrl === null ? {} : { callback_url: record.callbackUrl }),
    ...(record.maxRuns === null ? {} : { max_runs: record.maxRuns }),
    ...(record.untilAt === null ? {} : { until: toSeconds(record.untilAt) }),
    ...(record.pauseAfterFailures === null ? {} : { pause_after_failures: record.pauseAfterFailures }),
    ...shownProvenance(record.provenance),
    created_at: toSeconds(record.createdAt),
    updated_at: toSeconds(record.updatedAt),
    last_run_at: toSeconds(record.lastRunAt),
    last_run_id: record.lastRunId ?? 0,
    run_count: record.runCount,
    last_status: record.lastStatus,
    last_error: record.lastError === null ? null : redactor.text(record.lastError),
    consecutive_failures: record.consecutiveFailures,
    paused_reason: record.pausedReason,
  };
}

function shownProvenance(provenance: ScheduleRecord["provenance"]): Partial<ScheduledTask> {
  if (provenance === null) return {};
  const { createdBy, within } = provenance;
  const { keyId: key_id, agentId: agent_id, via, client } = createdBy;
  return {
    created_by: { key_id, agent_id, via, ...(client === undefined ? {} : { client }) },
    ...(within === null
      ? {}
      : { parent_task_id: within.taskId, root_task_id: within.rootTaskId, depth: within.depth + 1 }),
  };
}

/** The public view of a run, with secrets masked. */
export function toRun(record: RunRecord, redactor: Redactor): Run {
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
    result_summary: record.resultSummary === null ? null : redactor.text(record.resultSummary),
    error_message: record.error === null ? null : redactor.text(record.error),
    input_tokens: record.inputTokens,
    output_tokens: record.outputTokens,
    attempt: record.attempt,
  };
}
