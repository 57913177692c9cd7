/**
 * What a message does while others of its session wait or run. `queue`, `followup`: it waits behind them. `interrupt`: it replaces
 * them. `steer`: it waits, and the running attempt may take it. `collect`: it waits, and the next ones are added to it.
 */
export const SESSION_MODES = ["queue", "followup", "interrupt", "steer", "collect"] as const;
export type SessionMode = (typeof SESSION_MODES)[number];

/** Which message is dropped when a session is full: the one that has waited longest, or the new one. */
export const DROP_POLICIES = ["old", "new"] as const;
export type DropPolicy = (typeof DROP_POLICIES)[number];

/** How a session handles messages. */
export interface SessionSettings {
  readonly mode: SessionMode;
  /** How many messages may wait. */
  readonly cap: number;
  readonly drop: DropPolicy;
  /** Messages that come within this time of each other become one task; 0: each is a task of its own. */
  readonly debounceMs: number;
  /** How many of its tasks run at once, over all nodes. */
  readonly maxConcurrent: number;
}

/** The ranges of its numbers: more is a typing mistake, or would keep a message waiting for minutes. */
export const SESSION_RANGES = {
  cap: { min: 1, max: 10_000 },
  debounceMs: { min: 0, max: 60_000, unit: "milliseconds" },
  maxConcurrent: { min: 1, max: 1_000 },
  steerMs: { min: 1, max: 600_000, unit: "milliseconds" },
} as const;

/** How long a message in mode `steer` is offered to the attempt that runs, if the configuration does not say so. */
export const DEFAULT_STEER_MS = 5_000;

/** The result of a message that a running attempt has taken, once the task of that attempt is done. */
export interface SteeredResult {
  /** The id of the task whose attempt took the message. */
  readonly steeredInto: string;
}

/** A message that a running attempt has taken. */
export interface TakenMessage {
  readonly taskId: string;
  readonly message: string;
  /** Grows from message to message of one attempt. */
  readonly position: number;
}

/** How many messages an attempt takes at once, and about how many bytes they may have together; the first always fits. */
export const TAKEN_AT_ONCE = { messages: 20, bytes: 1_048_576 } as const;

export const DEFAULT_SESSION: SessionSettings = {
  mode: "queue",
  cap: 10,
  drop: "old",
  debounceMs: 800,
  maxConcurrent: 1,
};

/** Even if messages keep coming, their task starts after this many debounce windows. */
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

/** The `error` of a task that its session ended. */
export const SESSION_ENDS = {
  /** By `/stop` or `/stopall`. */
  stopped: "stopped",
  /** It was submitted before a `/stopall` or a reset, and its turn came only after that. */
  stale: "stale",
  /** A message in mode `interrupt` replaced it. */
  interrupted: "interrupted",
  reset: "session_reset",
  /** The session was full. */
  dropped: "queue_dropped",
} as const;
