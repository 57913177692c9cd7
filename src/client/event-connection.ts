import { AbortScope } from "./abort-scope.ts";
import type { Connection } from "./connection.ts";
import { answerTookTooLong, connectionFailed, notRotasAnswer } from "./connection-error.ts";
import { type SseMessage, SseParser } from "./sse-parser.ts";

export interface EventConnectionParams {
  readonly path: string;
  readonly query: Readonly<Record<string, unknown>>;
  /** A connection that is silent for this long is dead. */
  readonly silenceMaxMs: number;
  /** The number of the last event seen. */
  readonly after: number | undefined;
  readonly signal: AbortSignal;
}

/** One connection that carries events, from its first bytes to its loss. */
export class EventConnection {
  readonly #connection: Connection;
  readonly #scope: AbortScope;
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #silenceMaxMs: number;
  readonly #parser = new SseParser();
  #unread: SseMessage[] = [];

  /**
   * Connects and waits for the first bytes, in which the server sends the position of the stream. Only then is it certain that
   * events from now on will arrive. Throws as any request does.
   */
  static async open(connection: Connection, params: EventConnectionParams): Promise<EventConnection> {
    const { path, query, silenceMaxMs, after, signal } = params;
    const { url, clock } = connection.settings;
    const scope = new AbortScope(clock, signal);
    try {
      const lastSeen = after === undefined ? {} : { "last-event-id": String(after) };
      const response = await connection.open(
        {
          path,
          query,
          headers: { accept: "text/event-stream", ...lastSeen },
        },
        scope,
      );
      const isStream = response.headers.get("content-type")?.startsWith("text/event-stream") === true;
      const reader = isStream ? response.body?.getReader() : undefined;
      if (reader === undefined) throw notRotasAnswer(url, response.status, "no event stream");
      const opened = new EventConnection(connection, { scope, reader, silenceMaxMs });
      await opened.#begin();
      return opened;
    } catch (error) {
      scope.abort();
      scope.end();
      throw error;
    }
  }

  private constructor(
    connection: Connection,
    parts: {
      readonly scope: AbortScope;
      readonly reader: ReadableStreamDefaultReader<Uint8Array>;
      readonly silenceMaxMs: number;
    },
  ) {
    this.#connection = connection;
    this.#scope = parts.scope;
    this.#reader = parts.reader;
    this.#silenceMaxMs = parts.silenceMaxMs;
  }

  /** The position of the stream, if that is the first message. */
  get position(): SseMessage | undefined {
    const [first] = this.#unread;
    return first !== undefined && isPosition(first) ? first : undefined;
  }

  /** How long the server asks the client to wait before it connects again. */
  get retryMs(): number | undefined {
    return this.#parser.retryMs;
  }

  /** The messages until the connection is lost. Leaving the loop closes it. */
  async *messages(): AsyncGenerator<SseMessage, undefined> {
    try {
      for (;;) {
        yield* this.#unread;
        this.#scope.limit(this.#silenceMaxMs);
        const chunk = await this.#reader.read().catch(() => undefined);
        this.#scope.lift();
        if (chunk === undefined || chunk.done) return undefined;
        this.#unread = this.#parse(chunk.value);
      }
    } finally {
      this.#scope.abort();
      this.#scope.end();
    }
  }

  async #begin(): Promise<void> {
    const { url, timeoutMs } = this.#connection.settings;
    this.#scope.limit(timeoutMs);
    const chunk = await this.#reader.read().catch((error) => {
      throw this.#scope.timedOut ? answerTookTooLong(url, timeoutMs) : connectionFailed(url, error);
    });
    this.#scope.lift();
    if (chunk.done) throw connectionFailed(url, new Error("the event stream ended before it began"));
    this.#unread = this.#parse(chunk.value);
  }

  #parse(chunk: Uint8Array): SseMessage[] {
    try {
      return this.#parser.push(chunk);
    } catch (error) {
      throw notRotasAnswer(this.#connection.settings.url, 200, (error as Error).message);
    }
  }
}

/** Whether a message contains only the position of the stream. */
export function isPosition({ type, data }: SseMessage): boolean {
  return data === undefined || type === "open";
}
