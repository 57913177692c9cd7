import type { Session } from "../../interface/sessions.ts";
import type { TaskDefaults } from "../../model/input/task-input.ts";
import { FALLBACK_LANE } from "../../model/lane.ts";
import { effectiveMaxConcurrent, type SessionSettings } from "../../model/session.ts";
import { DEFAULT_AGENT } from "../../model/task.ts";
import type { SessionRecord } from "../../storage/storage.ts";

interface FilledIn extends Pick<TaskDefaults, "hasLane" | "laneOf"> {
  readonly settings: SessionSettings;
}

/** What users see of a session: what it does not say itself is what its next message would find. */
export function toSession(record: SessionRecord, { settings, hasLane, laneOf }: FilledIn): Session {
  const { key, tokens, contextWindow, generation, running, queued } = record;
  const agentId = record.agent ?? DEFAULT_AGENT;
  const lane = record.lane ?? laneOf(agentId) ?? FALLBACK_LANE;
  const maxConcurrent = record.maxConcurrent ?? settings.maxConcurrent;
  return {
    key,
    agentId,
    lane: hasLane(lane) ? lane : FALLBACK_LANE,
    mode: record.mode ?? settings.mode,
    cap: record.cap ?? settings.cap,
    drop: record.drop ?? settings.drop,
    debounceMs: record.debounceMs ?? settings.debounceMs,
    maxConcurrent,
    // Who waits was held to what was configured when the session was last used.
    effectiveMaxConcurrent: effectiveMaxConcurrent({
      maxConcurrent: record.maxConcurrent ?? record.defaultMax,
      tokens,
      contextWindow,
    }),
    tokens,
    contextWindow,
    generation,
    running,
    queued,
  };
}
