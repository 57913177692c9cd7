import { pause } from "../clock/pause.ts";
import { isObject, optionalNumber } from "../model/input/field-checks.ts";
import { AbortScope } from "./abort-scope.ts";
import type { Connection } from "./connection.ts";
import { notRotasAnswer } from "./connection-error.ts";
import { EventConnection, isPosition } from "./event-connection.ts";
import { isPassing, pauseAfterFailures } from "./passing.ts";
import type { SseMessage } from "./sse-parser.ts";

/** Pauses before reconnecting. The server may set the first one. */
const RECONNECT_MS = { first: 1_000, max: 30_000 } as const;

/** One of the server's streams. */
export interface EventFeed<Item> {
  readonly path: string;
  readonly query: Readonly<Record<string, unknown>>;
  /** The server sends heartbeats more often than this. A connection that is silent for longer is dead. */
  readonly silenceMaxMs: number;
  /** The name of its events in the log. */
  readonly name: string;
  /** The item for the reader; undefined for events that it does not need. */
  readonly toItem: (seq: number, said: Readonly<Record<string, unknown>>, type: string) => Item | undefined;
}

export interface EventStreamOptions {
  /** The number of the last event seen; 0: from the oldest; absent: from now on. */
  readonly after?: number;
  readonly signal?: AbortSignal;
  readonly onGap?: (gap: { readonly after: number; readonly oldest: number }) => void;
}

/**
 * One reader of the events of a server. It reconnects when the connection is lost, and resumes after the last event that it
 * returned: none is missed, and none comes twice.
 */
export class EventStream<Item> implements AsyncIterableIterator<Item, undefined> {
  readonly ready: Promise<void>;
  readonly #connection: Connection;
  readonly #feed: EventFeed<Item>;
  readonly #options: EventStreamOptions;
  readonly #scope: AbortScope;
  readonly #events: AsyncGenerator<Item, undefined>;
  /** Where to resume. Undefined until the server has sent the position of "from now on". */
  #after: number | undefined;

  /** Connects at once, so that no event before the first call of `next` is missed. */
  constructor(connection: Connection, feed: EventFeed<Item>, options: EventStreamOptions = {}) {
    this.#after = optionalNumber({ ...options }, "after", { min: 0, max: Number.MAX_SAFE_INTEGER });
    this.#connection = connection;
    this.#feed = feed;
    this.#options = options;
    this.#scope = new AbortScope(connection.settings.clock, options.signal);
    const first = this.#connectFirst();
    connection.holdWrites(first);
    this.ready = first.then(() => {});
    // The iteration throws the error. Without an iteration it must not end the process as an unhandled rejection.
    this.ready.catch(() => {});
    this.#events = this.#read(first);
  }

  get position(): number | undefined {
    return this.#after;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<Item, undefined>> {
    return this.#events.next();
  }

  return(): Promise<IteratorResult<Item, undefined>> {
    // A pending call of `next` would keep the generator from ending.
    this.#scope.abort();
    this.#scope.end();
    return this.#events.return(undefined);
  }

  async *#read(first: Promise<EventConnection>): AsyncGenerator<Item, undefined> {
    const { signal } = this.#scope;
    try {
      for (let stream = await first; ; stream = await this.#reconnect(stream.retryMs)) {
        for await (const message of stream.messages()) {
          if (signal.aborted) return undefined;
          const event = this.#take(message);
          if (event !== undefined) yield event;
        }
        if (signal.aborted) return undefined;
      }
    } catch (error) {
      if (signal.aborted) return undefined;
      throw error;
    } finally {
      this.#scope.abort();
      this.#scope.end();
    }
  }

  /** The item of a message. Undefined for events that were already seen, and for other messages. */
  #take({ type, data, id }: SseMessage): Item | undefined {
    const seq = toSeq(id);
    if (data === undefined || isPosition({ type, data, id })) {
      // The server has read up to here and resumes from here, even after a restore to smaller numbers.
      this.#after = seq ?? this.#after;
      return undefined;
    }
    const said = this.#parse(data);
    if (type === "gap") {
      this.#options.onGap?.({ after: Number(said["after"]), oldest: Number(said["oldest"]) });
      this.#after = seq ?? Math.max(Number(said["oldest"]) - 1, 0);
      return undefined;
    }
    if (seq === undefined || (this.#after !== undefined && seq <= this.#after)) return undefined;
    this.#after = seq;
    return this.#feed.toItem(seq, said, type);
  }

  #parse(data: string): Readonly<Record<string, unknown>> {
    try {
      const said = this.#connection.settings.parse(data);
      if (isObject(said)) return said;
    } catch {
      // Thrown below.
    }
    throw notRotasAnswer(this.#connection.settings.url, 200, data);
  }

  /** With the retries of an ordinary request, so that a wrong address is noticed. */
  async #connectFirst(): Promise<EventConnection> {
    const { retry, clock, random } = this.#connection.settings;
    for (let failures = 1; ; failures++) {
      try {
        return await this.#connect();
      } catch (error) {
        if (failures > retry.tries || !isPassing(error)) throw error;
        await pause(clock, pauseAfterFailures(failures, random), this.#scope.signal);
      }
    }
  }

  /** Retries until it works, the caller aborts, or the server refuses for good. */
  async #reconnect(retryMs: number = RECONNECT_MS.first): Promise<EventConnection> {
    const { clock, random, log } = this.#connection.settings;
    const { max } = RECONNECT_MS;
    for (let failures = 1; ; failures++) {
      const pauseMs = pauseAfterFailures(failures, random, { first: Math.min(retryMs, max), max });
      await pause(clock, pauseMs, this.#scope.signal);
      try {
        return await this.#connect();
      } catch (error) {
        if (!isPassing(error)) throw error;
        if (failures === 1)
          log.warn({ error }, `the stream of ${this.#feed.name} is lost; connecting until it works`);
      }
    }
  }

  async #connect(): Promise<EventConnection> {
    const { path, query, silenceMaxMs } = this.#feed;
    const { signal } = this.#scope;
    const params = { path, query, silenceMaxMs, after: this.#after, signal };
    const stream = await EventConnection.open(this.#connection, params);
    // Taken now, so that the position is known as soon as the stream is ready, and not only at the next read.
    if (stream.position !== undefined) this.#take(stream.position);
    return stream;
  }
}

/** The number of an event. Undefined if it is none. */
function toSeq(id: string): number | undefined {
  const seq = /^\d{1,16}$/.test(id) ? Number(id) : undefined;
  return Number.isSafeInteger(seq) ? seq : undefined;
}
