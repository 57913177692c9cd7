import { RUNS_LANE } from "../model/lane.ts";
import { DEFAULT_PRIORITY } from "../model/priority.ts";
import type { NewTask, ScheduleRecord } from "../storage/storage.ts";

/** What holds where a schedule does not say. */
export interface RunDefaults {
  readonly timeoutMs: number;
  /** How many tasks of a session run at once that does not say. */
  readonly sessionMaxConcurrent: number;
}

export interface RunTaskParams {
  readonly id: string;
  /** Whether it waits for the runs before it, also where runs otherwise do not. */
  readonly inTurn: boolean;
  readonly defaults: RunDefaults;
}

/** The task that a run of a schedule is. */
export function toRunTask(schedule: ScheduleRecord, params: RunTaskParams): NewTask {
  const { tenant, agent, message, conversationId, retryPolicy, timeoutMs } = schedule;
  const { id, defaults } = params;
  return {
    id,
    tenant,
    agent,
    lane: RUNS_LANE,
    priority: DEFAULT_PRIORITY,
    runAt: null,
    deadline: null,
    deadlineAfterMs: null,
    maxRetriesIfLost: retryPolicy.maxRetries,
    maxQueued: null,
    origin: "run",
    schedule: schedule.id,
    session: sessionOf(schedule, params),
    preemptible: false,
    concurrencyKey: null,
    batch: null,
    callbackUrl: null,
    dependsOn: [],
    idempotency: null,
    spec: {
      work: { kind: "message", message },
      ...(conversationId === null ? {} : { conversationId }),
      retryPolicy,
      timeoutMs: timeoutMs ?? defaults.timeoutMs,
    },
  };
}

/** In a session of their own, runs go one after the other; where they may go side by side, each has one for itself. */
function sessionOf(schedule: ScheduleRecord, { id, inTurn, defaults }: RunTaskParams): NewTask["session"] {
  const { sessionKey, overlap } = schedule;
  if (sessionKey !== null) return { key: sessionKey, maxConcurrent: defaults.sessionMaxConcurrent };
  const own = `schedule:${schedule.id}`;
  return { key: overlap === "allow" && !inTurn ? `${own}:${id}` : own, maxConcurrent: 1 };
}
