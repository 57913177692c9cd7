import { DEFAULT_RETRY_POLICY, type RetryPolicy } from "../../src/model/retry-policy.ts";
import type { TaskRecord } from "../../src/model/task-record.ts";
import type { ClaimedTask } from "../../src/storage/storage.ts";

let lastSeq = 0;

export interface RecordOverrides extends Partial<Omit<TaskRecord, "spec">> {
  readonly payload?: unknown;
  readonly timeoutMs?: number | null;
  readonly retryPolicy?: Partial<RetryPolicy>;
}

/** A task as it is claimed for its first attempt. */
export function claimedTask(overrides: RecordOverrides = {}): ClaimedTask {
  const { payload = null, timeoutMs = null, retryPolicy = {}, ...record } = overrides;
  lastSeq += 1;
  return {
    token: lastSeq + 1_000,
    bytes: 0,
    task: {
      seq: lastSeq,
      id: `tsk_${lastSeq}`,
      tenant: "default",
      agent: "worker",
      lane: "tasks",
      priority: 2,
      state: "running",
      position: 1,
      createdAt: 0,
      runAt: null,
      deadline: null,
      batch: null,
      session: null,
      schedule: null,
      concurrencyKey: null,
      callbackUrl: null,
      retryCount: 0,
      startedAt: 0,
      completedAt: null,
      result: undefined,
      error: null,
      usage: null,
      attempts: [{ number: 1, startedAt: 0, endedAt: null, outcome: null, error: null, node: "n" }],
      ...record,
      spec: {
        work: { kind: "custom", payload },
        retryPolicy: { ...DEFAULT_RETRY_POLICY, ...retryPolicy },
        timeoutMs,
      },
    },
  };
}
