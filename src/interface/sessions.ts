import type { PAGE } from "../model/input/page-input.ts";
import type { ChangesOf, InputOf } from "../model/input/schema.ts";
import type { MESSAGE, SESSION_CHANGES } from "../model/input/session-input.ts";
import type { DropPolicy, SessionMode } from "../model/session.ts";
import type { Task } from "../model/task.ts";
import type { TaskState } from "../model/task-state.ts";
import type { WaitOptions } from "./tasks.ts";

/**
 * Conversations. The messages of a session run in order over all nodes, one at a time unless the session sets another limit.
 * Messages that come right after each other become one. The first message or setting creates the session. Its key is any text
 * of up to 256 characters: a user, a channel, a thread.
 */
export interface Sessions {
  /**
   * Sends a message, which is durable once this resolves. `taskId` is the task of the message, or the one that it was added to
   * (`merged`). A message that is only `/stop` or `/stopall`, in any case and also as `/stop@name`, does not reach the agent: it
   * stops tasks, and the result lists them. Throws `queue_full` if the session is full and drops new messages.
   */
  send(key: string, input: SessionMessage): Promise<SessionAnswer>;
  /** Sends a message and waits until its task has ended: `send`, then `tasks.wait`. Throws what those throw. */
  ask(key: string, input: SessionMessage, options?: WaitOptions): Promise<SessionReply>;
  /**
   * Ends the task of the session that has been running longest; if none runs, the first that waits for its retry, for a slot
   * or in the debounce window.
   */
  stop(key: string): Promise<StoppedTasks>;
  /** Ends all running and waiting tasks of the session. */
  stopAll(key: string): Promise<StoppedTasks>;
  /** The same, and begins a new generation with an empty context, which tasks of the old generation cannot change. */
  reset(key: string): Promise<StoppedTasks>;
  /** Throws `not_found`. */
  get(key: string): Promise<Session>;
  /** Newest first, a page at a time. */
  list(page?: SessionPageInput): Promise<SessionPage>;
  /**
   * Changes the given fields; null resets a field to its default. Works before the first message, too. A session with settings
   * stays until it is deleted. Throws `conflict` if the tenant has `maxSessions` of them already.
   */
  update(key: string, changes: SessionChanges): Promise<Session>;
  /**
   * Deletes the settings, the context and the generation of a session. Its ended tasks stay until their retention ends, and the
   * session is listed until then. Throws `not_found`, and `conflict` while it has running or waiting tasks.
   */
  delete(key: string): Promise<{ readonly deleted: true }>;
}

export type SessionMessage = InputOf<typeof MESSAGE.fields>;

export interface SentMessage {
  readonly taskId: string;
  readonly state: TaskState;
  /** Its position among the agent's waiting tasks, counted from 1; 0: it cannot start yet. */
  readonly position: number;
  /** It was added to an earlier message that had not started yet. */
  readonly merged: boolean;
  /** Such as that no live node can execute it. Left out: there are none. */
  readonly warnings?: readonly string[];
}

export interface StoppedTasks {
  /** The ids of the tasks that were running. */
  readonly stopped: readonly string[];
  /** The ids of the tasks that were waiting. */
  readonly cancelled: readonly string[];
}

/** One of the two types; the fields of the other are undefined. */
type Either<One, Other> =
  | (One & { readonly [Field in Exclude<keyof Other, keyof One>]?: never })
  | (Other & { readonly [Field in Exclude<keyof One, keyof Other>]?: never });

/** The task of a message; for a stop word, the tasks that it stopped. */
export type SessionAnswer = Either<SentMessage, StoppedTasks>;
/** The ended task of a message; for a stop word, the tasks that it stopped. */
export type SessionReply = Either<Task, StoppedTasks>;

/** A session with defaults for everything that it does not set. */
export interface Session {
  readonly key: string;
  readonly agentId: string;
  readonly lane: string;
  readonly mode: SessionMode;
  /** How many messages may wait. */
  readonly cap: number;
  /** Which message is dropped when the session is full. */
  readonly drop: DropPolicy;
  readonly debounceMs: number;
  /** How many of its tasks may run at once. */
  readonly maxConcurrent: number;
  /** How many may run at once, given how full its context is. */
  readonly effectiveMaxConcurrent: number;
  /** How many tokens of its context are used, as last reported; null: never reported. */
  readonly tokens: number | null;
  readonly contextWindow: number | null;
  /** How often it was reset. */
  readonly generation: number;
  readonly running: number;
  /** All waiting tasks. */
  readonly queued: number;
}

export type SessionChanges = ChangesOf<typeof SESSION_CHANGES.fields>;

export type SessionPageInput = InputOf<typeof PAGE.fields>;

export interface SessionPage {
  readonly sessions: readonly Session[];
  /** Of this page. */
  readonly count: number;
  /** Null on the last page. */
  readonly nextCursor: string | null;
}
