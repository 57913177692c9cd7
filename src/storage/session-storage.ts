/** How a storage keeps conversations in order: one part of the contract in storage.ts. */
import type { DropPolicy, SessionMode, SessionSettings } from "../model/session.ts";
import type { Turn } from "../model/turn.ts";
import type { CancelledTask, Held, InsertedTask, NewTask } from "./task-storage.ts";

/**
 * Sessions. Tasks of one start in the order of their places, at most `effectiveMaxConcurrent` at once over all nodes; the
 * rest is parked. A place is given on acceptance, and anew to a task that had to wait for its moment or for others, when it
 * becomes ready. Once let in, a task keeps its place until it ends, also while it waits for a retry. Among tasks that are
 * let in together the earlier one starts first if they are of one agent and lane, whatever their priorities.
 *
 * A session comes into being with its first task, message or setting.
 */
export interface SessionStorage {
  /**
   * Takes a message in, as the session's settings say: with `interrupt` all that runs or waits in the session is cancelled;
   * within the debounce it is added to the message before it, if that is of the same agent, lane and mode; when the session
   * is full, the message that waits longest goes, or this one is refused and nothing is stored. A message, or any other task
   * of the session that becomes ready, ends the debounce of the one before it.
   */
  send(params: SendParams): Promise<SentMessage>;
  /**
   * Cancels tasks of the session. Of `oldest` the running one that started first; if none runs, the first in place of those
   * that wait in the session: for their retry, for a slot, or in the debounce window, but not for `runAt` or for dependencies.
   * Of `all` everything that has not ended, and so with `reset`, which also begins a new generation with an empty context. Up to `limit` at a time: while `more`,
   * call again with the `cutoff` that was answered, so that what came since is left alone. From the first call on, whatever
   * was accepted before it and turns up later ends as `stale`.
   */
  stop(params: StopSessionParams): Promise<StoppedSession>;
  get(params: SessionName): Promise<SessionRecord | null>;
  /** The newest first. */
  list(params: {
    tenant: string;
    limit: number;
    cursor?: number;
  }): Promise<{ sessions: SessionRecord[]; nextCursor: number | null }>;
  /**
   * Reads the session of a task for the attempt that holds it: the tasks with the same agent that were done since the last
   * reset and have an earlier place, oldest first, as many of the last as `limit`, `TURNS_LOOKED_AT` and `TURNS_BYTES_MAX` allow.
   * Null when the attempt no longer holds the task, the task has no session, or a reset is about to end it.
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
  /** Its `session` says which. */
  readonly task: NewTask;
  /** For this message; null: the session's. */
  readonly mode: SessionMode | null;
  /** Stays on the session, as a setting of it; null: as it is. */
  readonly maxConcurrent: number | null;
  /** As in `UpdateSessionParams`: `send` throws `conflict`, too. */
  readonly maxSessions?: number | null;
  /** What holds where the session does not say. */
  readonly defaults: Omit<SessionSettings, "maxConcurrent">;
}

export type SentMessage =
  | {
      readonly refused: null;
      /** The task that it became, or was added to. */
      readonly task: InsertedTask;
      readonly merged: boolean;
      /** What had to go for it. */
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

/** Null: the session does not say, and the configuration holds. */
export interface SessionRecord extends SessionName {
  /** Grows with every session that is made. */
  readonly seq: number;
  /** Who its messages go to, and where they run, unless they say otherwise: as the last one did. */
  readonly agent: string | null;
  readonly lane: string | null;
  readonly mode: SessionMode | null;
  readonly cap: number | null;
  readonly drop: DropPolicy | null;
  readonly debounceMs: number | null;
  readonly maxConcurrent: number | null;
  /** What holds where `maxConcurrent` does not say: as whoever last used the session was configured. */
  readonly defaultMax: number;
  /** How much of its context is used, as was told last; null: nobody told. */
  readonly tokens: number | null;
  readonly contextWindow: number | null;
  /** How often it was reset. */
  readonly generation: number;
  readonly running: number;
  /** Everything that waits, for whatever reason. */
  readonly queued: number;
}

/** Null takes a setting back. */
export type SessionChanges = Partial<
  Pick<
    SessionRecord,
    "agent" | "lane" | "mode" | "cap" | "drop" | "debounceMs" | "maxConcurrent" | "tokens" | "contextWindow"
  >
>;
