import { isObject, optionalNumber } from "../model/input/field-checks.ts";
import { AbortScope } from "./abort-scope.ts";
import type { Connection } from "./connection.ts";
import { notRotasAnswer } from "./connection-error.ts";
import { EventConnection, isPlace } from "./event-connection.ts";
import { isPassing, pauseAfterFailures } from "./passing.ts";
import type { SseMessage } from "./sse-parser.ts";
import { pause } from "./timers.ts";

/** Pauses before connecting again; the server may say itself how long the first is to be. */
const RECONNECT_MS = { first: 1_000, max: 30_000 } as const;

/** What there is to read. */
export interface EventFeed<Item> {
  readonly path: string;
  readonly query: Readonly<Record<string, unknown>>;
  /** The server says something more often than this, if only that it lives: a connection that is silent for longer is dead. */
  readonly silenceMaxMs: number;
  /** What its events are called in the log. */
  readonly name: string;
  /** What whoever reads is handed of an event; undefined for what is of no concern to them. */
  readonly toItem: (seq: number, said: Readonly<Record<string, unknown>>, type: string) => Item | undefined;
}

export interface EventStreamOptions {
  /** The number of the last one seen; 0 for all there are; left out: from now on. */
  readonly after?: number;
  readonly signal?: AbortSignal;
  readonly onGap?: (gap: { readonly after: number; readonly oldest: number }) => void;
}

/**
 * One reader's way through the events of a server. A connection that is lost is made again, and reading goes on behind
 * the last event that was handed out: none is missed, none comes twice.
 */
export class EventStream<Item> implements AsyncIterableIterator<Item, undefined> {
  readonly ready: Promise<void>;
  readonly #connection: Connection;
  readonly #feed: EventFeed<Item>;
  readonly #options: EventStreamOptions;
  readonly #scope: AbortScope;
  readonly #events: AsyncGenerator<Item, undefined>;
  /** Where to go on; undefined while the server has not said where "from now on" begins. */
  #after: number | undefined;

  /** Connects at once, so that nothing is missed that happens before the first call of `next`. */
  constructor(connection: Connection, feed: EventFeed<Item>, options: EventStreamOptions = {}) {
    this.#after = optionalNumber({ ...options }, "after", { min: 0, max: Number.MAX_SAFE_INTEGER });
    this.#connection = connection;
    this.#feed = feed;
    this.#options = options;
    this.#scope = new AbortScope(connection.settings.clock, options.signal);
    const first = this.#connectFirst();
    connection.holdWrites(first);
    this.ready = first.then(() => {});
    // Whoever iterates is told; a stream that nobody iterates yet must not end the process.
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
    // A call of `next` that still waits would keep the generator from ending.
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

  /** The event that a message tells; undefined for one that was told before, and for other messages. */
  #take({ type, data, id }: SseMessage): Item | undefined {
    const seq = toSeq(id);
    if (data === undefined || isPlace({ type, data, id })) {
      // How far the server has looked: it goes on from there, also if that is a storage with smaller numbers.
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
      const said = JSON.parse(data);
      if (isObject(said)) return said;
    } catch {
      // Said below.
    }
    throw notRotasAnswer(this.#connection.settings.url, 200, data);
  }

  /** As often as any request is tried: an address that is wrong should be noticed. */
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

  /** Until it works, the caller ends it, or the server answers that it never will. */
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
    // It is known as soon as the stream is ready, not only when somebody reads on.
    if (stream.place !== undefined) this.#take(stream.place);
    return stream;
  }
}

/** The number of an event; undefined for what is none. */
function toSeq(id: string): number | undefined {
  const seq = /^\d{1,16}$/.test(id) ? Number(id) : undefined;
  return Number.isSafeInteger(seq) ? seq : undefined;
}
