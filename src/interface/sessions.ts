import type { DropPolicy, SessionMode } from "../model/session.ts";
import type { Task } from "../model/task.ts";
import type { TaskState } from "../model/task-state.ts";
import type { WaitOptions } from "./tasks.ts";

/**
 * Conversations. What is said in one is answered in the order it was said, one at a time unless the session says
 * otherwise, over all nodes; messages that come right after each other become one. A session comes into being with its
 * first message or setting, and its key is any text of up to 256 characters: a user, a channel, a thread.
 */
export interface Sessions {
  /**
   * Says something. The message is durable once this answers; `taskId` is the task that it became, or was added to
   * (`merged`). The words `/stop` and `/stopall` alone, in any case and also as `/stop@name`, are not passed on: they do what they say, and the answer is what they
   * ended. Throws `queue_full` when the session is full and drops what is new.
   */
  send(key: string, input: SessionMessage): Promise<SessionAnswer>;
  /** Says something and waits for what becomes of it: `send`, and then `tasks.wait`, with what those throw. */
  ask(key: string, input: SessionMessage, options?: WaitOptions): Promise<SessionReply>;
  /**
   * Ends the task of the session that has been running longest; if none runs, the first that waits for its retry, for a slot
   * or in the debounce window.
   */
  stop(key: string): Promise<StoppedTasks>;
  /** Ends all that runs or waits in it. */
  stopAll(key: string): Promise<StoppedTasks>;
  /** The same, and begins a new generation with an empty context: nothing of the old one can change anything. */
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

export interface SessionMessage {
  readonly message: string;
  /** Who is told: left out, whoever was last, else `index`. */
  readonly agentId?: string;
  /** Where it runs: left out, where the last one did, else where the agent does, else `main`. */
  readonly lane?: string;
  /** For this message alone. */
  readonly mode?: SessionMode;
  /** Stays on the session. */
  readonly maxConcurrent?: number;
}

export interface SentMessage {
  readonly taskId: string;
  readonly state: TaskState;
  /** Its place among the agent's waiting tasks, itself included; 0 when it cannot start yet. */
  readonly position: number;
  /** It was added to a message before it that had not been passed on yet. */
  readonly merged: boolean;
  /** Left out when there are none: no live node can execute it, say. */
  readonly warnings?: readonly string[];
}

export interface StoppedTasks {
  /** The ids of those that ran. */
  readonly stopped: readonly string[];
  /** The ids of those that waited. */
  readonly cancelled: readonly string[];
}

/** One of both; of the other, all is undefined. */
type Either<One, Other> =
  | (One & { readonly [Field in Exclude<keyof Other, keyof One>]?: never })
  | (Other & { readonly [Field in Exclude<keyof One, keyof Other>]?: never });

/** What became of a message; of a stop word, what it ended. */
export type SessionAnswer = Either<SentMessage, StoppedTasks>;
/** The task that a message became, once it has ended; of a stop word, what it ended. */
export type SessionReply = Either<Task, StoppedTasks>;

/** A session with everything that it does not say itself filled in. */
export interface Session {
  readonly key: string;
  readonly agentId: string;
  readonly lane: string;
  readonly mode: SessionMode;
  /** How many messages may wait. */
  readonly cap: number;
  /** Who has to go when one more comes. */
  readonly drop: DropPolicy;
  readonly debounceMs: number;
  /** How many of its tasks may run at once. */
  readonly maxConcurrent: number;
  /** How many do, given how full its context is. */
  readonly effectiveMaxConcurrent: number;
  /** How much of its context is used, as was told last; null: nobody told. */
  readonly tokens: number | null;
  readonly contextWindow: number | null;
  /** How often it was reset. */
  readonly generation: number;
  readonly running: number;
  /** Everything that waits, for whatever reason. */
  readonly queued: number;
}

export type SessionChanges = {
  readonly [Field in
    | "agentId"
    | "lane"
    | "mode"
    | "cap"
    | "drop"
    | "debounceMs"
    | "maxConcurrent"
    | "tokens"
    | "contextWindow"]?: Session[Field] | null;
};

export interface SessionPageInput {
  /** The most events: 1 to 1000, 100 by default. */
  readonly limit?: number;
  /** `nextCursor` of the page before. */
  readonly cursor?: string;
}

export interface SessionPage {
  readonly sessions: readonly Session[];
  /** Of this page. */
  readonly count: number;
  /** Null on the last page. */
  readonly nextCursor: string | null;
}
