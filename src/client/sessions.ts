import type {
  Session,
  SessionAnswer,
  SessionChanges,
  SessionMessage,
  SessionPage,
  SessionPageInput,
  SessionReply,
  Sessions,
  StoppedTasks,
} from "../interface/sessions.ts";
import type { Tasks, WaitOptions } from "../interface/tasks.ts";
import { checkKnown, isObject } from "../model/input/field-checks.ts";
import { checkWait } from "../model/input/wait-input.ts";
import { checkSessionKey } from "../model/session-key.ts";
import type { CallOptions } from "./call-options.ts";
import type { Connection } from "./connection.ts";

/** The fields of a message. Their schema, with all that it says to readers, would be sent to every browser. */
const MESSAGE_FIELDS: Readonly<Record<keyof SessionMessage, true>> = {
  message: true,
  agentId: true,
  lane: true,
  mode: true,
  maxConcurrent: true,
  callbackUrl: true,
};

/** Sessions over HTTP. */
export class HttpSessions implements Sessions {
  readonly #connection: Connection;
  readonly #tasks: Pick<Tasks, "wait">;

  constructor(connection: Connection, tasks: Pick<Tasks, "wait">) {
    this.#connection = connection;
    this.#tasks = tasks;
  }

  async send(key: string, input: SessionMessage, { signal }: CallOptions = {}): Promise<SessionAnswer> {
    // The server accepts more fields than a message has, such as one that makes it wait.
    if (isObject(input)) checkKnown(input, Object.keys(MESSAGE_FIELDS));
    return this.#connection.ask({
      method: "POST",
      path: `${sessionPath(key)}/messages`,
      body: input ?? null,
      signal,
    });
  }

  /** Two requests, so that a wait whose connection is lost can resume with the known task. */
  async ask(key: string, input: SessionMessage, options: WaitOptions = {}): Promise<SessionReply> {
    checkWait(options);
    const sent = await this.send(key, input, options.signal === undefined ? {} : { signal: options.signal });
    return sent.taskId === undefined ? sent : this.#tasks.wait(sent.taskId, options);
  }

  async stop(key: string, options: CallOptions = {}): Promise<StoppedTasks> {
    return this.#post(key, "stop", options);
  }

  async stopAll(key: string, options: CallOptions = {}): Promise<StoppedTasks> {
    return this.#post(key, "stopall", options);
  }

  async reset(key: string, options: CallOptions = {}): Promise<StoppedTasks> {
    return this.#post(key, "reset", options);
  }

  async get(key: string, { signal }: CallOptions = {}): Promise<Session> {
    return this.#connection.ask({ path: sessionPath(key), signal });
  }

  list(page: SessionPageInput = {}, { signal }: CallOptions = {}): Promise<SessionPage> {
    return this.#connection.ask({ path: "/v1/sessions", query: { ...page }, signal });
  }

  async update(key: string, changes: SessionChanges, { signal }: CallOptions = {}): Promise<Session> {
    return this.#connection.ask({
      method: "PATCH",
      path: sessionPath(key),
      body: changes ?? null,
      signal,
      // Idempotent: sending the same changes again changes nothing.
      repeatable: true,
    });
  }

  async delete(key: string, { signal }: CallOptions = {}): Promise<{ readonly deleted: true }> {
    return this.#connection.ask({
      method: "DELETE",
      path: sessionPath(key),
      signal,
      repeatable: true,
      whenDone: ({ code }) => (code === "not_found" ? { deleted: true } : undefined),
    });
  }

  #post(key: string, what: string, { signal }: CallOptions): Promise<StoppedTasks> {
    return this.#connection.ask({ method: "POST", path: `${sessionPath(key)}/${what}`, signal });
  }
}

/** A text that cannot be a key might lead to another route, so no request is sent. */
function sessionPath(key: string): string {
  return `/v1/sessions/${encodeURIComponent(checkSessionKey(key, "key"))}`;
}
