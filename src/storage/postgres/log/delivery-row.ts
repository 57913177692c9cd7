import type { DeliveryStatus } from "../../../model/delivery.ts";
import type { BatchEnd, DeliveryRecord, TaskEnd } from "../../storage.ts";

export interface DeliveryRow {
  readonly seq: string;
  readonly tenant: string;
  readonly task_seq: string;
  readonly task_id: string;
  readonly url: string;
  readonly host: string;
  /** Null: the host is not known. */
  readonly host_proven: boolean | null;
  /** Null in a delivery about a batch, as are the next three. In one about a task, the columns of the batch are null. */
  readonly task_state: TaskEnd["state"] | null;
  readonly task_error: string | null;
  readonly task_retries: number | null;
  readonly task_attempts: number | null;
  readonly batch: string | null;
  readonly batch_created_at: string | null;
  readonly parallelism: number | null;
  readonly batch_counts: string | null;
  readonly created_at: string;
  readonly status: DeliveryStatus;
  readonly tries: number;
  readonly due_at: string | null;
  readonly last_try_at: string | null;
  readonly response_status: number | null;
  readonly error: string | null;
}

export const DELIVERY_COLUMNS = `d.seq, d.tenant, d.task_seq, t.id as task_id, d.url, d.host, r.proven as host_proven, d.task_state, d.task_error, d.task_retries,
  d.task_attempts, b.id as batch, b.created_at as batch_created_at, b.parallelism, d.batch_counts, d.created_at, d.status,
  d.tries, d.due_at, d.last_try_at, d.response_status, d.error`;

/** A batch exists as long as one of its tasks does, and so does a delivery about it. */
export const DELIVERY_TABLES = `delivery d join task t on t.seq = d.task_seq
  left join batch b on b.id = t.batch and d.batch_counts is not null
  left join receiver r on r.tenant = d.tenant and r.host = d.host`;

export function toDeliveryRecord(row: DeliveryRow): DeliveryRecord {
  return {
    seq: Number(row.seq),
    tenant: row.tenant,
    taskSeq: Number(row.task_seq),
    taskId: row.task_id,
    url: row.url,
    host: row.host,
    hostProven: row.host_proven === true,
    end: toTaskEnd(row),
    batch: toBatchEnd(row),
    status: row.status,
    tries: row.tries,
    createdAt: Number(row.created_at),
    dueAt: row.due_at === null ? null : Number(row.due_at),
    lastTryAt: row.last_try_at === null ? null : Number(row.last_try_at),
    responseStatus: row.response_status,
    error: row.error,
  };
}

function toTaskEnd(row: DeliveryRow): TaskEnd | null {
  const { task_state: state, task_error: error, task_retries: retryCount, task_attempts: attempts } = row;
  if (state === null || retryCount === null || attempts === null) return null;
  return { state, completedAt: Number(row.created_at), error, retryCount, attempts };
}

function toBatchEnd(row: DeliveryRow): BatchEnd | null {
  const { batch: id, parallelism, batch_counts: counts } = row;
  if (id === null || counts === null) return null;
  const times = { createdAt: Number(row.batch_created_at), completedAt: Number(row.created_at) };
  return { id, parallelism, ...times, counts: JSON.parse(counts) };
}
