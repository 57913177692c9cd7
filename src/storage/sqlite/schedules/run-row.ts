import type { RunStatus } from "../../../model/run.ts";
import type { RunRecord } from "../../storage.ts";

/** A row of `run`. */
export interface RunRow {
  readonly id: number;
  readonly tenant: string;
  readonly schedule: number;
  readonly agent: string;
  readonly task_id: string | null;
  readonly due_at: number;
  readonly first_due_at: number;
  readonly moments: number;
  readonly forced: 0 | 1;
  readonly status: RunStatus;
  readonly reason: string | null;
  readonly started_at: number | null;
  readonly completed_at: number | null;
  readonly request_id: string | null;
  readonly result_summary: string | null;
  readonly error: string | null;
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly attempt: number;
}

/** With the number of attempts so far, if it is running. */
export type ReadRun = RunRow & { readonly tried: number | null };

export function toRunRecord(row: ReadRun): RunRecord {
  return {
    id: row.id,
    tenant: row.tenant,
    scheduleId: row.schedule,
    agent: row.agent,
    taskId: row.task_id,
    dueAt: row.due_at,
    firstDueAt: row.first_due_at,
    moments: row.moments,
    forced: row.forced === 1,
    status: row.status,
    reason: row.reason,
    startedAt: row.started_at,
    completedAt: row.completed_at,
    requestId: row.request_id,
    resultSummary: row.result_summary,
    error: row.error,
    inputTokens: row.input_tokens,
    outputTokens: row.output_tokens,
    attempt: row.tried ?? row.attempt,
  };
}
