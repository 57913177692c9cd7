/** What a message does when others of its session wait or run: it goes after them, or takes their place. */
export const SESSION_MODES = ["queue", "followup", "interrupt"] as const;
export type SessionMode = (typeof SESSION_MODES)[number];

/** Who has to go when a session is full: the message that waits longest, or the one that comes. */
export const DROP_POLICIES = ["old", "new"] as const;
export type DropPolicy = (typeof DROP_POLICIES)[number];

/** How a session takes messages. */
export interface SessionSettings {
  readonly mode: SessionMode;
  /** How many messages may wait. */
  readonly cap: number;
  readonly drop: DropPolicy;
  /** Messages that come so soon after each other become one run; 0: each is its own. */
  readonly debounceMs: number;
  /** How many of its tasks run at once, over all nodes. */
  readonly maxConcurrent: number;
}

/** What its numbers may be: more is a slip of the finger, or would keep a message waiting for minutes. */
export const SESSION_RANGES = {
  cap: { min: 1, max: 10_000 },
  debounceMs: { min: 0, max: 60_000, unit: "milliseconds" },
  maxConcurrent: { min: 1, max: 1_000 },
} as const;

export const DEFAULT_SESSION: SessionSettings = {
  mode: "queue",
  cap: 10,
  drop: "old",
  debounceMs: 800,
  maxConcurrent: 1,
};

/** What a message may say. */
export const MESSAGE_FIELDS = ["message", "agentId", "lane", "mode", "maxConcurrent"] as const;

/** However fast messages keep coming, the run that they become starts after so many windows. */
export const DEBOUNCE_WINDOWS_MAX = 5;

/** From this share of its context window on, a session runs one task at a time. */
export const THROTTLE_SHARE = 0.6;

/** How many tasks of a session run at once, given how full its context is. */
export function effectiveMaxConcurrent(session: {
  readonly maxConcurrent: number;
  readonly tokens: number | null;
  readonly contextWindow: number | null;
}): number {
  const { maxConcurrent, tokens, contextWindow } = session;
  if (tokens === null || contextWindow === null) return maxConcurrent;
  return tokens >= THROTTLE_SHARE * contextWindow ? 1 : maxConcurrent;
}

/** What the `error` of a task says that its session ended. */
export const SESSION_ENDS = {
  /** By `/stop` or `/stopall`. */
  stopped: "stopped",
  /** It turned up after `/stopall`, and was from before. */
  stale: "stale",
  /** A message in mode `interrupt` took its place. */
  interrupted: "interrupted",
  reset: "session_reset",
  /** The session was full. */
  dropped: "queue_dropped",
} as const;
