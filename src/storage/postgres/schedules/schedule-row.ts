import { scheduleKind } from "../../../model/rule.ts";
import type { ScheduleWork } from "../../../model/schedule.ts";
import { withLazyJson } from "../../lazy-json.ts";
import { scheduleWorkText } from "../../schedule-work-text.ts";
import type { NewSchedule, ScheduleDefinition, ScheduleRecord, UpdateScheduleParams } from "../../storage.ts";
import { cleanText } from "../connection/text.ts";

/** A row of `schedule`. The driver returns 64-bit numbers as text. */
export interface ScheduleRow {
  readonly id: string;
  readonly tenant: string;
  readonly name: string | null;
  readonly agent: string;
  readonly message: string;
  readonly phrase: string;
  readonly rule: string;
  readonly anchor_at: string;
  readonly conversation_id: string | null;
  readonly session_key: string | null;
  readonly post_to_session: boolean;
  readonly delete_after_run: boolean;
  readonly retry_policy: string;
  readonly overlap: ScheduleRecord["overlap"];
  readonly catch_up: ScheduleRecord["catchUp"];
  readonly useful_for_ms: string | null;
  readonly timeout_ms: string | null;
  readonly work: string | null;
  readonly lane: string | null;
  readonly priority: number | null;
  readonly metadata: string | null;
  readonly callback_url: string | null;
  readonly max_runs: string | null;
  readonly until_at: string | null;
  readonly pause_after_failures: number | null;
  readonly status: ScheduleRecord["status"];
  readonly revision: string;
  readonly created_at: string;
  readonly updated_at: string;
  readonly next_fire_at: string | null;
  readonly last_due_at: string | null;
  readonly last_run_at: string | null;
  readonly last_run_id: string | null;
  readonly run_count: string;
  readonly last_status: ScheduleRecord["lastStatus"];
  readonly last_error: string | null;
  readonly consecutive_failures: number;
  readonly paused_reason: string | null;
  readonly open_runs: number;
  readonly held: boolean;
  readonly provenance: string | null;
}

/** The bytes of its fields that can be large. PostgreSQL knows `octet_length` without reading the text. */
export const SCHEDULE_BYTES =
  "octet_length(message) + coalesce(octet_length(work), 0) + coalesce(octet_length(metadata), 0)";

export function toScheduleRecord(row: ScheduleRow): ScheduleRecord {
  const record = {
    id: Number(row.id),
    tenant: row.tenant,
    name: row.name,
    agent: row.agent,
    phrase: row.phrase,
    rule: JSON.parse(row.rule),
    anchorAt: Number(row.anchor_at),
    conversationId: row.conversation_id,
    sessionKey: row.session_key,
    postToSession: row.post_to_session,
    deleteAfterRun: row.delete_after_run,
    retryPolicy: JSON.parse(row.retry_policy),
    overlap: row.overlap,
    catchUp: row.catch_up,
    usefulForMs: toNumber(row.useful_for_ms),
    timeoutMs: toNumber(row.timeout_ms),
    lane: row.lane,
    priority: row.priority,
    callbackUrl: row.callback_url,
    maxRuns: toNumber(row.max_runs),
    untilAt: toNumber(row.until_at),
    pauseAfterFailures: row.pause_after_failures,
    status: row.status,
    revision: Number(row.revision),
    createdAt: Number(row.created_at),
    updatedAt: Number(row.updated_at),
    nextFireAt: toNumber(row.next_fire_at),
    lastDueAt: toNumber(row.last_due_at),
    lastRunAt: toNumber(row.last_run_at),
    lastRunId: toNumber(row.last_run_id),
    runCount: Number(row.run_count),
    lastStatus: row.last_status,
    lastError: row.last_error,
    consecutiveFailures: row.consecutive_failures,
    pausedReason: row.paused_reason,
    openRuns: row.open_runs,
    held: row.held,
    provenance: row.provenance === null ? null : JSON.parse(row.provenance),
  };
  return withLazyJson<ScheduleRecord, "work" | "metadata">(record, {
    work: row.work ?? `{"kind":"message","message":${row.message}}`,
    metadata: row.metadata,
  });
}

/** The columns that a definition or a change sets; undefined: it leaves them out. */
export function toColumns(given: Partial<ScheduleDefinition> & UpdateScheduleParams["changes"]) {
  return {
    name: cleaned(given.name),
    agent: given.agent,
    ...workColumns(given.work),
    phrase: cleaned(given.phrase),
    rule: given.rule === undefined ? undefined : JSON.stringify(given.rule),
    kind: given.rule === undefined ? undefined : scheduleKind(given.rule),
    anchor_at: given.anchorAt,
    conversation_id: cleaned(given.conversationId),
    session_key: cleaned(given.sessionKey),
    post_to_session: given.postToSession,
    delete_after_run: given.deleteAfterRun,
    retry_policy: given.retryPolicy === undefined ? undefined : JSON.stringify(given.retryPolicy),
    overlap: given.overlap,
    catch_up: given.catchUp,
    useful_for_ms: given.usefulForMs,
    timeout_ms: given.timeoutMs,
    lane: cleaned(given.lane),
    priority: given.priority,
    metadata: given.metadata == null ? given.metadata : JSON.stringify(given.metadata),
    callback_url: cleaned(given.callbackUrl),
    max_runs: given.maxRuns,
    until_at: given.untilAt,
    pause_after_failures: given.pauseAfterFailures,
    status: given.status,
    next_fire_at: given.nextFireAt,
    provenance: given.provenance === undefined ? undefined : JSON.stringify(given.provenance),
  };
}

/** As JSON: the input of an agent may contain characters that PostgreSQL cannot store as text. */
function workColumns(work: ScheduleWork | undefined) {
  if (work === undefined) return {};
  return work.kind === "message"
    ? { message: JSON.stringify(work.message), work: null }
    : { message: '""', work: scheduleWorkText(work) };
}

function cleaned<Text extends string | null | undefined>(text: Text): Text | string {
  return typeof text === "string" ? cleanText(text) : text;
}

function toNumber(value: string | null): number | null {
  return value === null ? null : Number(value);
}

/** Who made a schedule. */
export function toMakerColumns(provenance: NewSchedule["provenance"]) {
  return {
    provenance: provenance === undefined ? null : JSON.stringify(provenance),
    maker_key: provenance?.createdBy.keyId ?? null,
    maker_agent: provenance?.createdBy.agentId ?? null,
  };
}
