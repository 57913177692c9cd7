import type { Session } from "../../interface/sessions.ts";
import { DEFAULT_AGENT } from "../../model/agent.ts";
import type { TaskDefaults } from "../../model/input/task-input.ts";
import { FALLBACK_LANE } from "../../model/lane.ts";
import { effectiveMaxConcurrent, type SessionSettings } from "../../model/session.ts";
import type { SessionRecord } from "../../storage/storage.ts";

interface FilledIn extends Pick<TaskDefaults, "hasLane" | "laneOf"> {
  readonly settings: SessionSettings;
}

/** The public view of a session, with the defaults that apply to its next message. */
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
    // Waiting tasks are held to the default that was configured when the session was last used.
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
