import type { Events, EventsOptions } from "../interface/rota.ts";
import type { RotaEvent } from "../model/event.ts";
import { isObject, optionalNumber } from "../model/field-checks.ts";
import { AbortScope } from "./abort-scope.ts";
import type { Connection } from "./connection.ts";
import { answerTookTooLong, connectionFailed, notRotasAnswer } from "./connection-error.ts";
import { isPassing, pauseAfterFailures } from "./passing.ts";
import { type SseMessage, SseParser } from "./sse-parser.ts";
import { pause } from "./timers.ts";

/** The server says something every 15 s, if only that it lives: a connection that is silent for this long is dead. */
const SILENCE_MAX_MS = 45_000;
/** Pauses before connecting again; the stream may say itself how long the first is to be. */
const RECONNECT_MS = { first: 1_000, max: 30_000 } as const;

interface OpenStream {
  readonly reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly parser: SseParser;
  /** What has been read of it and not been told. */
  readonly messages: SseMessage[];
  /** Ends this connection alone. */
  readonly scope: AbortScope;
}

/**
 * One reader's way through the events of a server. A connection that is lost is made again, and reading goes on behind
 * the last event that was handed out: none is missed, none comes twice.
 */
export class EventStream implements Events {
  readonly ready: Promise<void>;
  readonly #connection: Connection;
  readonly #options: EventsOptions;
  readonly #scope: AbortScope;
  readonly #events: AsyncGenerator<RotaEvent, undefined>;
  /** Where to go on; undefined while the server has not said where "from now on" begins. */
  #after: number | undefined;
  #reconnectMs: number = RECONNECT_MS.first;

  /** Connects at once, so that nothing is missed that happens before the first call of `next`. */
  constructor(connection: Connection, options: EventsOptions = {}) {
    this.#after = optionalNumber({ ...options }, "after", { min: 0, max: Number.MAX_SAFE_INTEGER });
    this.#connection = connection;
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

  next(): Promise<IteratorResult<RotaEvent, undefined>> {
    return this.#events.next();
  }

  return(): Promise<IteratorResult<RotaEvent, undefined>> {
    // A call of `next` that still waits would keep the generator from ending.
    this.#scope.abort();
    this.#scope.end();
    return this.#events.return(undefined);
  }

  async *#read(first: Promise<OpenStream>): AsyncGenerator<RotaEvent, undefined> {
    const { signal } = this.#scope;
    try {
      for (let stream = await first; ; stream = await this.#reconnect()) {
        yield* this.#readUntilLost(stream);
        signal.throwIfAborted();
        this.#connection.settings.log.debug({}, "the event stream ended; connecting again");
      }
    } catch (error) {
      if (signal.aborted) return undefined;
      throw error;
    } finally {
      this.#scope.abort();
      this.#scope.end();
    }
  }

  async *#readUntilLost({
    reader,
    parser,
    messages,
    scope,
  }: OpenStream): AsyncGenerator<RotaEvent, undefined> {
    try {
      for (let unread = messages; ; ) {
        for (const message of unread) {
          const event = this.#take(message);
          if (event === undefined) continue;
          if (this.#scope.signal.aborted) return undefined;
          yield event;
        }
        this.#reconnectMs = Math.min(parser.retryMs ?? RECONNECT_MS.first, RECONNECT_MS.max);
        scope.limit(SILENCE_MAX_MS);
        const chunk = await reader.read().catch(() => undefined);
        scope.lift();
        if (chunk === undefined || chunk.done) return undefined;
        unread = parser.push(chunk.value);
      }
    } finally {
      scope.abort();
      scope.end();
    }
  }

  /** The event that a message tells; undefined for one that was told before, and for other messages. */
  #take({ type, data, id }: SseMessage): RotaEvent | undefined {
    const seq = toSeq(id);
    if (data === undefined) {
      // How far the server has looked: it goes on from there, also if that is a storage with smaller numbers.
      this.#after = seq ?? this.#after;
      return undefined;
    }
    const said = this.#parse(data);
    if (type === "gap") {
      this.#options.onGap?.({ after: Number(said["after"]), oldest: Number(said["oldest"]) });
      this.#after = Math.max(Number(said["oldest"]) - 1, 0);
      return undefined;
    }
    if (seq === undefined || (this.#after !== undefined && seq <= this.#after)) return undefined;
    this.#after = seq;
    return { seq, ...said } as RotaEvent;
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
  async #connectFirst(): Promise<OpenStream> {
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
  async #reconnect(): Promise<OpenStream> {
    const { clock, random, log } = this.#connection.settings;
    for (let failures = 1; ; failures++) {
      const pauses = { first: this.#reconnectMs, max: RECONNECT_MS.max };
      await pause(clock, pauseAfterFailures(failures, random, pauses), this.#scope.signal);
      try {
        return await this.#connect();
      } catch (error) {
        if (!isPassing(error)) throw error;
        if (failures === 1) log.warn({ error }, "the event stream is lost; connecting until it works");
      }
    }
  }

  async #connect(): Promise<OpenStream> {
    const { settings } = this.#connection;
    const { agentId, batchId } = this.#options;
    const scope = new AbortScope(settings.clock, this.#scope.signal);
    try {
      const response = await this.#connection.open(
        {
          path: "/v1/tasks/events",
          query: { agentId, batchId },
          headers: {
            accept: "text/event-stream",
            ...(this.#after === undefined ? {} : { "last-event-id": String(this.#after) }),
          },
        },
        scope,
      );
      const isStream = response.headers.get("content-type")?.startsWith("text/event-stream") === true;
      const reader = isStream ? response.body?.getReader() : undefined;
      if (reader === undefined) throw notRotasAnswer(settings.url, response.status, "no event stream");
      return { reader, scope, ...(await this.#begin(reader, scope)) };
    } catch (error) {
      scope.abort();
      scope.end();
      throw error;
    }
  }

  /** The server says at once from where it goes on. Until then nobody knows whether it would tell what happens now. */
  async #begin(
    reader: ReadableStreamDefaultReader<Uint8Array>,
    scope: AbortScope,
  ): Promise<Pick<OpenStream, "parser" | "messages">> {
    const { url, timeoutMs } = this.#connection.settings;
    const parser = new SseParser();
    scope.limit(timeoutMs);
    const chunk = await reader.read().catch((error) => {
      throw scope.timedOut ? answerTookTooLong(url, timeoutMs) : connectionFailed(url, error);
    });
    scope.lift();
    if (chunk.done) throw connectionFailed(url, new Error("the event stream ended before it began"));
    const messages = parser.push(chunk.value);
    const [first] = messages;
    if (first !== undefined && first.data === undefined) this.#take(first);
    return { parser, messages };
  }
}

/** The number of an event; undefined for what is none. */
function toSeq(id: string): number | undefined {
  const seq = /^\d{1,16}$/.test(id) ? Number(id) : undefined;
  return Number.isSafeInteger(seq) ? seq : undefined;
}
