import { FALLBACK_LANE, RUNS_LANE } from "../../model/lane.ts";
import { DEFAULT_PRIORITY } from "../../model/priority.ts";
import type { NewTask, ScheduleRecord } from "../../storage/storage.ts";

/** What holds where a schedule does not say. */
export interface RunDefaults {
  readonly timeoutMs: number;
  /** How many tasks of a session run at once that does not say. */
  readonly sessionMaxConcurrent: number;
  readonly hasLane: (lane: string) => boolean;
}

export interface RunTaskParams {
  readonly id: string;
  /** The id that the run is called by in logs, here and on the agent's side. */
  readonly requestId: string;
  /** Whether it waits for the runs before it, also where runs otherwise do not. */
  readonly inTurn: boolean;
  readonly defaults: RunDefaults;
}

/** The task that a run of a schedule is. */
export function toRunTask(schedule: ScheduleRecord, params: RunTaskParams): NewTask {
  const { tenant, agent, work, conversationId, retryPolicy, timeoutMs, metadata, callbackUrl } = schedule;
  const { id, requestId, defaults } = params;
  return {
    id,
    tenant,
    agent,
    lane: laneOf(schedule, defaults),
    priority: schedule.priority ?? DEFAULT_PRIORITY,
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
    callbackUrl,
    dependsOn: [],
    idempotency: null,
    spec: {
      work,
      ...(metadata === null ? {} : { metadata }),
      requestId,
      ...(conversationId === null ? {} : { conversationId }),
      retryPolicy,
      timeoutMs: timeoutMs ?? defaults.timeoutMs,
    },
  };
}

/** A lane that is not there, or no longer, is as for any task. */
function laneOf({ lane }: ScheduleRecord, { hasLane }: RunDefaults): string {
  if (lane === null) return RUNS_LANE;
  return hasLane(lane) ? lane : FALLBACK_LANE;
}

/** In a session of their own, runs go one after the other; where they may go side by side, each has one for itself. */
function sessionOf(schedule: ScheduleRecord, { id, inTurn, defaults }: RunTaskParams): NewTask["session"] {
  const { sessionKey, overlap } = schedule;
  if (sessionKey !== null) return { key: sessionKey, maxConcurrent: defaults.sessionMaxConcurrent };
  const own = `schedule:${schedule.id}`;
  return { key: overlap === "allow" && !inTurn ? `${own}:${id}` : own, maxConcurrent: 1 };
}
