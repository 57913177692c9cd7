import { jsonText } from "../../../model/text/json-text.ts";
import { withLazyJson } from "../../lazy-json.ts";
import { scheduleWorkText } from "../../schedule-work-text.ts";
import type { NewSchedule, ScheduleDefinition, ScheduleRecord } from "../../storage.ts";

/** A row of `schedule`. */
export interface ScheduleRow {
  readonly id: number;
  readonly tenant: string;
  readonly name: string | null;
  readonly agent: string;
  readonly message: string;
  readonly phrase: string;
  readonly rule: string;
  readonly kind: "once" | "recurring";
  readonly anchor_at: number;
  readonly conversation_id: string | null;
  readonly session_key: string | null;
  readonly post_to_session: 0 | 1;
  readonly delete_after_run: 0 | 1;
  readonly retry_policy: string;
  readonly overlap: ScheduleRecord["overlap"];
  readonly catch_up: ScheduleRecord["catchUp"];
  readonly useful_for_ms: number | null;
  readonly timeout_ms: number | null;
  readonly work: string | null;
  readonly lane: string | null;
  readonly priority: number | null;
  readonly metadata: string | null;
  readonly callback_url: string | null;
  readonly max_runs: number | null;
  readonly until_at: number | null;
  readonly pause_after_failures: number | null;
  readonly status: ScheduleRecord["status"];
  readonly revision: number;
  readonly created_at: number;
  readonly updated_at: number;
  readonly next_fire_at: number | null;
  readonly last_due_at: number | null;
  readonly last_run_at: number | null;
  readonly last_run_id: number | null;
  readonly run_count: number;
  readonly last_status: ScheduleRecord["lastStatus"];
  readonly last_error: string | null;
  readonly consecutive_failures: number;
  readonly paused_reason: string | null;
  readonly open_runs: number;
  readonly held: 0 | 1;
  readonly provenance: string | null;
}

/** The bytes of its fields that can be large. SQLite knows `octet_length` without reading the text. */
export const SCHEDULE_BYTES =
  "octet_length(message) + coalesce(octet_length(work), 0) + coalesce(octet_length(metadata), 0)";

export function toScheduleRecord(row: ScheduleRow): ScheduleRecord {
  const record = {
    id: row.id,
    tenant: row.tenant,
    name: row.name,
    agent: row.agent,
    phrase: row.phrase,
    rule: JSON.parse(row.rule),
    anchorAt: row.anchor_at,
    conversationId: row.conversation_id,
    sessionKey: row.session_key,
    postToSession: row.post_to_session === 1,
    deleteAfterRun: row.delete_after_run === 1,
    retryPolicy: JSON.parse(row.retry_policy),
    overlap: row.overlap,
    catchUp: row.catch_up,
    usefulForMs: row.useful_for_ms,
    timeoutMs: row.timeout_ms,
    lane: row.lane,
    priority: row.priority,
    callbackUrl: row.callback_url,
    maxRuns: row.max_runs,
    untilAt: row.until_at,
    pauseAfterFailures: row.pause_after_failures,
    status: row.status,
    revision: row.revision,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    nextFireAt: row.next_fire_at,
    lastDueAt: row.last_due_at,
    lastRunAt: row.last_run_at,
    lastRunId: row.last_run_id,
    runCount: row.run_count,
    lastStatus: row.last_status,
    lastError: row.last_error,
    consecutiveFailures: row.consecutive_failures,
    pausedReason: row.paused_reason,
    openRuns: row.open_runs,
    held: row.held === 1,
    provenance: row.provenance === null ? null : JSON.parse(row.provenance),
  };
  return withLazyJson<ScheduleRecord, "work" | "metadata">(record, {
    work: row.work ?? `{"kind":"message","message":${JSON.stringify(row.message)}}`,
    metadata: row.metadata,
  });
}

/** The columns of a definition. */
export function toColumns(definition: ScheduleDefinition) {
  const { work, metadata } = definition;
  return {
    name: definition.name,
    agent: definition.agent,
    message: work.kind === "message" ? work.message : "",
    work: work.kind === "message" ? null : scheduleWorkText(work),
    phrase: definition.phrase,
    rule: JSON.stringify(definition.rule),
    kind: definition.rule.kind === "once" ? "once" : "recurring",
    anchor_at: definition.anchorAt,
    conversation_id: definition.conversationId,
    session_key: definition.sessionKey,
    post_to_session: definition.postToSession ? 1 : 0,
    delete_after_run: definition.deleteAfterRun ? 1 : 0,
    retry_policy: JSON.stringify(definition.retryPolicy),
    overlap: definition.overlap,
    catch_up: definition.catchUp,
    useful_for_ms: definition.usefulForMs,
    timeout_ms: definition.timeoutMs,
    lane: definition.lane,
    priority: definition.priority,
    metadata: metadata === null ? null : (jsonText(metadata) ?? null),
    callback_url: definition.callbackUrl,
    max_runs: definition.maxRuns,
    until_at: definition.untilAt,
    pause_after_failures: definition.pauseAfterFailures,
  };
}

/** Who made a schedule. */
export function toMakerColumns(provenance: NewSchedule["provenance"]) {
  return {
    provenance: provenance === undefined ? null : JSON.stringify(provenance),
    maker_key: provenance?.createdBy.keyId ?? null,
    maker_agent: provenance?.createdBy.agentId ?? null,
  };
}
