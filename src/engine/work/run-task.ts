import { FALLBACK_LANE, RUNS_LANE } from "../../model/lane.ts";
import { DEFAULT_PRIORITY } from "../../model/priority.ts";
import type { CreatedBy } from "../../model/provenance.ts";
import type { NewTask, ScheduleRecord } from "../../storage/storage.ts";

/** Values for fields that a schedule leaves out. */
export interface RunDefaults {
  readonly timeoutMs: number;
  /** How many tasks of a session run at once, by default. */
  readonly sessionMaxConcurrent: number;
  readonly hasLane: (lane: string) => boolean;
}

export interface RunTaskParams {
  readonly id: string;
  /** The id of the run in the logs of Rota and of the agent. */
  readonly requestId: string;
  /** Whether it waits for earlier runs even if the overlap policy is `allow`. */
  readonly inTurn: boolean;
  readonly defaults: RunDefaults;
}

/** The task of a run of a schedule. */
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
      ...(schedule.postToSession && schedule.sessionKey !== null ? { postTo: schedule.sessionKey } : {}),
      retryPolicy,
      timeoutMs: timeoutMs ?? defaults.timeoutMs,
      createdBy: makerOf(schedule),
      // The runs of a schedule may do what its maker may.
      ...(schedule.provenance?.reach === undefined ? {} : { reach: schedule.provenance.reach }),
    },
  };
}

/** A run is made for the caller that made its schedule. It begins a tree of its own. */
function makerOf({ provenance }: ScheduleRecord): CreatedBy {
  const { keyId = null, agentId = null } = provenance?.createdBy ?? {};
  return { keyId, agentId, via: "schedule" };
}

/** A lane that does not exist is replaced by the fallback lane, as for any task. */
function laneOf({ lane }: ScheduleRecord, { hasLane }: RunDefaults): string {
  if (lane === null) return RUNS_LANE;
  return hasLane(lane) ? lane : FALLBACK_LANE;
}

/** The runs of a schedule without a session, or that only posts to it, share one of their own, so that they run one after the other. With overlap `allow` each gets its own. */
function sessionOf(schedule: ScheduleRecord, { id, inTurn, defaults }: RunTaskParams): NewTask["session"] {
  const { sessionKey, postToSession, overlap } = schedule;
  if (sessionKey !== null && !postToSession)
    return { key: sessionKey, maxConcurrent: defaults.sessionMaxConcurrent };
  const own = `schedule:${schedule.id}`;
  return { key: overlap === "allow" && !inTurn ? `${own}:${id}` : own, maxConcurrent: 1 };
}
