import { callbackHost } from "../../../model/callback-host.ts";
import type { EventType } from "../../../model/event.ts";
import type { TerminalState } from "../../../model/task-state.ts";
import type { BatchEnd, EventData } from "../../storage.ts";
import { endRun } from "../schedules/runs.ts";
import { copyJson, type OracleState, type OracleTask, signal } from "../state.ts";
import { refreshReceiver } from "./receivers.ts";

/** Writes an event. The number of a start doubles as its fencing token. */
export function addEvent(
  state: OracleState,
  type: EventType,
  task: OracleTask,
  data: EventData | null,
): number {
  takeEventNumber(state);
  const at = state.clock.now();
  state.events.push({
    seq: state.lastEventSeq,
    type,
    at,
    taskSeq: task.seq,
    tenant: task.tenant,
    data: copyJson(data),
  });
  const seq = state.lastEventSeq;
  state.newestEventSeq = seq;
  if (type === "task.completed" || type === "task.failed" || type === "task.cancelled") {
    addDelivery(state, task);
    endRun(state, task);
  }
  return seq;
}

/** The next number of the log. An assigned attempt has one as its token, and no event has it. */
export function takeEventNumber(state: OracleState): number {
  state.lastEventSeq += 1;
  return state.lastEventSeq;
}

/** Adds a delivery at the end of a task that has a callback. */
function addDelivery(state: OracleState, task: OracleTask): void {
  if (task.callbackUrl === null || task.completedAt === null) return;
  deliver(state, task, { url: task.callbackUrl, batch: null });
}

/** Adds a delivery. It is due at once and has the number of the event that was just written. */
export function deliver(
  state: OracleState,
  task: OracleTask,
  { url, batch }: { url: string; batch: BatchEnd | null },
): void {
  const { seq: taskSeq, id: taskId, tenant, completedAt, error, retryCount } = task;
  if (completedAt === null) throw new Error("Only a task that has ended has a delivery.");
  const now = batch?.completedAt ?? completedAt;
  signal(state, { kind: "deliveries" });
  const host = callbackHost(url);
  state.deliveries.push({
    seq: state.lastEventSeq,
    tenant,
    taskSeq,
    taskId,
    url,
    host,
    batch,
    end:
      batch !== null
        ? null
        : {
            state: task.state as TerminalState,
            completedAt,
            error,
            retryCount,
            attempts: task.attempts.length,
          },
    status: "pending",
    tries: 0,
    createdAt: now,
    dueAt: now,
    lastTryAt: null,
    responseStatus: null,
    error: null,
  });
  refreshReceiver(state, { tenant, host });
}
