import type { DeliveryStatus } from "../../../model/delivery.ts";
import type { DeliveryRecord, TaskEnd } from "../../storage.ts";

export interface DeliveryRow {
  readonly seq: number;
  readonly tenant: string;
  readonly task_seq: number;
  readonly task_id: string;
  readonly url: string;
  readonly host: string;
  /** Null: the host has no row in `receiver`. */
  readonly host_proven: 0 | 1 | null;
  readonly batch: string | null;
  /** These four are null if it reports a batch. */
  readonly task_state: TaskEnd["state"] | null;
  readonly task_error: string | null;
  readonly task_retries: number | null;
  readonly task_attempts: number | null;
  readonly created_at: number;
  readonly status: DeliveryStatus;
  readonly tries: number;
  readonly due_at: number | null;
  readonly last_try_at: number | null;
  readonly response_status: number | null;
  readonly error: string | null;
}

export const DELIVERY_COLUMNS = `d.seq, d.tenant, d.task_seq, t.id as task_id, d.url, d.host, r.proven as host_proven, d.batch, d.task_state, d.task_error, d.task_retries,
  d.task_attempts, d.created_at, d.status, d.tries, d.due_at, d.last_try_at, d.response_status, d.error`;

export const DELIVERY_TABLES = `delivery d join task t on t.seq = d.task_seq
  left join receiver r on r.tenant = d.tenant and r.host = d.host`;

export function toDeliveryRecord(row: DeliveryRow): DeliveryRecord {
  return {
    seq: row.seq,
    tenant: row.tenant,
    taskSeq: row.task_seq,
    taskId: row.task_id,
    url: row.url,
    host: row.host,
    hostProven: row.host_proven === 1,
    end:
      row.task_state === null
        ? null
        : {
            state: row.task_state,
            completedAt: row.created_at,
            error: row.task_error,
            retryCount: row.task_retries ?? 0,
            attempts: row.task_attempts ?? 0,
          },
    batch: row.batch === null ? null : JSON.parse(row.batch),
    status: row.status,
    tries: row.tries,
    createdAt: row.created_at,
    dueAt: row.due_at,
    lastTryAt: row.last_try_at,
    responseStatus: row.response_status,
    error: row.error,
  };
}
