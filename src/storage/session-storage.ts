/** Sessions: one part of the contract in storage.ts. */
import type { DropPolicy, SessionMode, SessionSettings, TakenMessage } from "../model/session.ts";
import type { Turn } from "../model/turn.ts";
import type { SubmitBounds } from "./submit-bounds.ts";
import type { CancelledTask, Held, InsertedTask, NewTask } from "./task-storage.ts";

/**
 * Sessions. The tasks of a session start in the order of their positions (`place`), at most `effectiveMaxConcurrent` at once
 * over all nodes; the rest is parked. A task gets its position on acceptance. One that had to wait for its `runAt` or for
 * dependencies gets a new one when it becomes ready. Once admitted to the session, a task keeps its slot until it ends, also
 * while it waits for a retry. Of several admitted tasks of one agent and lane the earlier one starts first, whatever their
 * priorities.
 *
 * The first task, message or setting creates a session.
 */
export interface SessionStorage {
  /**
   * Inserts a message by the settings of the session. With `interrupt` it cancels everything that runs or waits in the session.
   * Within the debounce window it adds the text to the previous message, if that has the same agent, lane and mode. If the
   * session is full, it cancels the message that has waited longest, or refuses this one and stores nothing. A message, or any
   * other task of the session that becomes ready, ends the debounce window of the previous message.
   *
   * With `collect` there is no debounce window: it adds the text to the last task that is ready in the session, if that is a
   * message in mode `collect` for the same agent and lane that has never started. With `steer` and a running task there is no
   * debounce window either, and `takeMessages` offers the message for `steerMs`.
   */
  send(params: SendParams): Promise<SentMessage>;
  /**
   * For an attempt that holds its task: takes messages in mode `steer` to the same agent that wait for the session, in order, while
   * they are offered. Returns those with a position after `after` that this attempt has taken, now or before. Empty if it
   * no longer holds the task. See `TAKEN_AT_ONCE`.
   *
   * A taken message stays `queued` and keeps its position, but is neither admitted nor dropped, and the `cap` does not count it. It
   * ends together with the task of the attempt: `done` with a `SteeredResult`, or with the same state and error. If the attempt
   * ends and its task does not, the message waits for the session again.
   */
  takeMessages(params: TakeMessagesParams): Promise<readonly TakenMessage[]>;
  /**
   * Adds a task that is done to the session, at the end of what is ready there: nothing runs for it. Idempotent by its id, as
   * `insert`. The cap does not apply.
   */
  post(params: PostParams): Promise<void>;
  /**
   * Cancels tasks of the session. `oldest`: the running task that started first; if none runs, the first by position of those
   * that wait for their retry, for a slot or in the debounce window, but not of those that wait for `runAt` or dependencies.
   * `all`: everything that has not ended. `reset`: the same, and it begins a new generation with an empty context. One call
   * cancels up to `limit`. While `more`, call again with the returned `cutoff`, which spares newer tasks. From the first call
   * on, a task that was accepted before it and becomes ready later ends as `stale`.
   */
  stop(params: StopSessionParams): Promise<StoppedSession>;
  get(params: SessionName): Promise<SessionRecord | null>;
  /** The newest first. A session without an agent counts as one of `DEFAULT_AGENT`. */
  list(params: {
    tenant: string;
    agent?: string;
    limit: number;
    cursor?: number;
  }): Promise<{ sessions: SessionRecord[]; nextCursor: number | null }>;
  /**
   * Reads the session of a task for the attempt that holds it: the tasks of the same agent that were done since the last reset
   * and have an earlier position, oldest first. It returns as many of the newest as `limit`, `TURNS_LOOKED_AT` and
   * `TURNS_BYTES_MAX` allow. Null when the attempt no longer holds the task, the task has no session, or a reset is about to
   * end it.
   */
  readTurns(params: ReadTurnsParams): Promise<SessionTurns | null>;
  /**
   * Changes the given fields, and creates the session if there is none. A session that was created so, or of which more than the
   * context was set, has settings: it stays, with or without tasks, until it is deleted. So does one that was reset, so that no
   * generation is used twice. Any other session is deleted with the last of its tasks. Throws `conflict` if this would give it
   * settings and its tenant has `maxSessions` with settings already.
   */
  update(params: UpdateSessionParams): Promise<SessionRecord>;
  /**
   * Deletes the settings, the context and the generation of a session. It is deleted with the last of its tasks, which are no
   * longer part of its history. `open`: how many of its tasks run or wait; if not 0, nothing was deleted.
   */
  delete(params: SessionName): Promise<DeletedSession>;
}

export interface UpdateSessionParams extends SessionName {
  readonly defaultMax: number;
  readonly changes: SessionChanges;
  /** How many sessions with settings its tenant may have; null, or left out: any number. */
  readonly maxSessions?: number | null;
}

export type DeletedSession = { readonly found: false } | { readonly found: true; readonly open: number };

export interface PostParams {
  /** Its `session` names the session. */
  readonly task: NewTask;
  readonly result: unknown;
}

export interface TakeMessagesParams extends Held {
  /** The position of the last message that the attempt has seen; 0: none. */
  readonly after: number;
}

export interface ReadTurnsParams extends Held {
  /** 0: none. */
  readonly limit: number;
}

export interface SessionTurns {
  readonly generation: number;
  readonly contextWindow: number | null;
  readonly turns: readonly Turn[];
  /** How long they are together, as they are stored. */
  readonly turnsLength: number;
}

export interface SessionName {
  readonly tenant: string;
  readonly key: string;
}

export interface SendParams {
  /** Its `session` names the session. */
  readonly task: NewTask;
  /** For this message; null: the session's. */
  readonly mode: SessionMode | null;
  /** Stored as a setting of the session; null: unchanged. */
  readonly maxConcurrent: number | null;
  /** As in `UpdateSessionParams`: `send` throws `conflict`, too. */
  readonly maxSessions?: number | null;
  /** Used for settings that the session does not have. */
  readonly defaults: Omit<SessionSettings, "maxConcurrent">;
  /**
   * Bounds on the message, unless its text is added to another one. Throws `quota_exceeded`, and changes nothing, if they would be
   * exceeded. Left out: none.
   */
  readonly bounds?: SubmitBounds;
  /** How long a running attempt may take a message in mode `steer`. Left out: `DEFAULT_STEER_MS`. */
  readonly steerMs?: number;
}

export type SentMessage =
  | {
      readonly refused: null;
      /** The task of the message, or the one that its text was added to. */
      readonly task: InsertedTask;
      readonly merged: boolean;
      /** The tasks that it interrupted or displaced. */
      readonly cancelled: readonly EndedTask[];
    }
  | { readonly refused: { readonly waiting: number; readonly cap: number } };

export interface StopSessionParams extends SessionName {
  readonly scope: "oldest" | "all" | "reset";
  readonly limit: number;
  readonly cutoff?: number;
}

export interface StoppedSession {
  /** Those that ran. */
  readonly stopped: readonly EndedTask[];
  /** Those that waited. */
  readonly cancelled: readonly EndedTask[];
  readonly more: boolean;
  readonly cutoff: number;
}

/** A task that was cancelled. */
export type EndedTask = Extract<CancelledTask, { was: null }>;

/** A setting that is null is taken from the configuration. */
export interface SessionRecord extends SessionName {
  /** Grows with every new session. */
  readonly seq: number;
  /** The agent and lane of messages that name none: those of the last message. */
  readonly agent: string | null;
  readonly lane: string | null;
  readonly mode: SessionMode | null;
  readonly cap: number | null;
  readonly drop: DropPolicy | null;
  readonly debounceMs: number | null;
  readonly maxConcurrent: number | null;
  /** Applies if `maxConcurrent` is null: from the configuration of the node that last used the session. */
  readonly defaultMax: number;
  /** How many tokens of its context are used, as last reported; null: never reported. */
  readonly tokens: number | null;
  readonly contextWindow: number | null;
  /** How often it was reset. */
  readonly generation: number;
  readonly running: number;
  /** All waiting tasks, for any reason. */
  readonly queued: number;
}

/** Null removes a setting. */
export type SessionChanges = Partial<
  Pick<
    SessionRecord,
    "agent" | "lane" | "mode" | "cap" | "drop" | "debounceMs" | "maxConcurrent" | "tokens" | "contextWindow"
  >
>;
