import type { Events, EventsOptions } from "../interface/rota.ts";
import type { RotaEvent } from "../model/event.ts";
import { isObject, optionalNumber } from "../model/field-checks.ts";
import { AbortScope } from "./abort-scope.ts";
import type { Connection } from "./connection.ts";
import { notRotasAnswer } from "./connection-error.ts";
import { EventConnection } from "./event-connection.ts";
import { isPassing, pauseAfterFailures } from "./passing.ts";
import type { SseMessage } from "./sse-parser.ts";
import { pause } from "./timers.ts";

/** Pauses before connecting again; the server may say itself how long the first is to be. */
const RECONNECT_MS = { first: 1_000, max: 30_000 } as const;

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

  async *#read(first: Promise<EventConnection>): AsyncGenerator<RotaEvent, undefined> {
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
        if (failures === 1) log.warn({ error }, "the event stream is lost; connecting until it works");
      }
    }
  }

  async #connect(): Promise<EventConnection> {
    const { agentId, batchId, sessionKey } = this.#options;
    const { signal } = this.#scope;
    const params = { after: this.#after, agentId, batchId, sessionKey, signal };
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
