import type { ServerResponse } from "node:http";
import type { Events, EventsOptions, Rota } from "../interface/rota.ts";
import type { Clock } from "../model/clock.ts";
import { RotaError } from "../model/errors.ts";
import type { RotaEvent } from "../model/event.ts";
import type { Log } from "../model/log.ts";
import { Places } from "./places.ts";

/** Proxies cut connections on which nothing moves, many after 30 or 60 seconds. */
const HEARTBEAT_MS = 15_000;
/** How long a browser waits before it connects again. */
const RECONNECT_MS = 1_000;
const STREAMS_MAX = 1_000;

export const STREAM_HEADERS = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-store",
  // Proxies of the nginx kind would collect events instead of passing them on.
  "x-accel-buffering": "no",
  // A stream is the last thing on its connection: when it ends, nothing is left to keep the server from closing.
  connection: "close",
} as const;

export interface EventStreamsOptions {
  readonly rota: Pick<Rota, "events">;
  readonly clock: Clock;
  readonly log: Log;
  /** For tests: how many there can be at once. */
  readonly max?: number;
}

/** What happens, as server-sent events: to everybody who asked, each at the pace at which they read. */
export class EventStreams {
  readonly #options: EventStreamsOptions;
  readonly #places: Places;
  readonly #closing = new AbortController();

  constructor(options: EventStreamsOptions) {
    this.#options = options;
    this.#places = new Places({ max: options.max ?? STREAMS_MAX, what: "event streams" });
  }

  /** How many are open. */
  get size(): number {
    return this.#places.taken;
  }

  /** Begins a stream, which goes on until the reader goes away or the server closes. Throws before it has begun. */
  open(response: ServerResponse, options: Omit<EventsOptions, "signal" | "onGap">): void {
    if (this.#closing.signal.aborted) throw new RotaError("draining", "this node is stopping");
    const gone = new AbortController();
    const giveBack = this.#places.take();
    // Comes in any case, also after an answer that refuses the stream.
    response.once("close", () => {
      giveBack();
      gone.abort();
    });
    let missing = "";
    const events = this.#options.rota.events({
      ...options,
      signal: AbortSignal.any([gone.signal, this.#closing.signal]),
      onGap: (gap) => {
        missing = `event: gap\ndata: ${JSON.stringify(gap)}\n\n`;
      },
    });
    response.writeHead(200, STREAM_HEADERS).flushHeaders();
    void this.#send(events, response, () => missing);
  }

  /** Ends all streams; those who listened connect again, and go on where they were. */
  close(): void {
    this.#closing.abort();
  }

  async #send(events: Events, response: ServerResponse, missing: () => string): Promise<void> {
    const stopHeartbeat = this.#heartbeat(events, response);
    try {
      await events.ready;
      response.write(`retry: ${RECONNECT_MS}\n${place(events)}${missing()}`);
      for await (const event of events) {
        // The next event is not even asked for before there is room for it: what a slow reader has not read stays
        // where it is, in the storage.
        if (!response.write(frame(event))) await drained(response);
      }
    } catch (error) {
      // The answer has begun, so that it can only end. Whoever listens connects again and goes on where it was.
      this.#options.log.debug({ error }, "an event stream ended early");
    } finally {
      stopHeartbeat();
      response.end();
    }
  }

  #heartbeat(events: Events, response: ServerResponse): () => void {
    const { clock } = this.#options;
    const beat = () => {
      // Whoever does not read what is there already needs no sign of life.
      if (!response.writableNeedDrain) response.write(`: still here\n${place(events)}`);
      timer = clock.setTimer(HEARTBEAT_MS, beat);
    };
    let timer = clock.setTimer(HEARTBEAT_MS, beat);
    return () => timer.cancel();
  }
}

function frame({ seq, ...event }: RotaEvent): string {
  return `id: ${seq}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
}

/**
 * Says how far the stream has come, also when nothing that was asked for has happened: whoever loses the connection
 * then goes on from there. An event without data is not told to anybody, but its id counts.
 */
function place({ position }: Events): string {
  return position === undefined ? "\n" : `id: ${position}\n\n`;
}

/** Resolves once what was written has been taken, or will never be. */
function drained(response: ServerResponse): Promise<void> {
  if (response.destroyed) return Promise.resolve();
  return new Promise((resolve) => {
    const done = () => {
      response.off("drain", done).off("close", done);
      resolve();
    };
    response.on("drain", done).on("close", done);
  });
}
