import type { ServerResponse } from "node:http";
import type { Events, EventsOptions, Rota } from "../interface/rota.ts";
import type { SentMessage } from "../interface/sessions.ts";
import type { Clock } from "../model/clock.ts";
import { RotaError } from "../model/errors.ts";
import type { RotaEvent } from "../model/event.ts";
import type { Log } from "../model/log.ts";
import { isTerminal } from "../model/task-state.ts";
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

/** What a stream tells, and when it ends by itself. */
interface StreamPlan {
  readonly opening: () => string;
  readonly fits?: (event: RotaEvent) => boolean;
  readonly isLast?: (event: RotaEvent) => boolean;
}

export interface RunStream {
  readonly sessionKey: string;
  /** Ends it after so long, whether or not its task has ended; undefined: no sooner than that. */
  readonly timeoutMs: number | undefined;
  /** Says the message. Null: there is nothing to follow. */
  readonly begin: () => Promise<SentMessage | null>;
  /** Told when the reader goes away before the end. */
  readonly onGone: (sent: SentMessage) => void;
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
    const gone = this.#enter(response);
    let missing = "";
    const events = this.#options.rota.events({
      ...options,
      signal: AbortSignal.any([gone, this.#closing.signal]),
      onGap: (gap) => {
        missing = `event: gap\ndata: ${JSON.stringify(gap)}\n\n`;
      },
    });
    response.writeHead(200, STREAM_HEADERS).flushHeaders();
    void this.#send(events, response, {
      opening: () => `retry: ${RECONNECT_MS}\n${place(events)}${missing}`,
    });
  }

  /**
   * Begins a stream of what becomes of one message: that it was taken in, then the events of its task up to the last. What
   * `begin` throws is thrown, and with null there is no stream.
   */
  async openRun(
    response: ServerResponse,
    { sessionKey, timeoutMs, begin, onGone }: RunStream,
  ): Promise<void> {
    const gone = this.#enter(response);
    const enough = new AbortController();
    const signal = AbortSignal.any([gone, enough.signal, this.#closing.signal]);
    // What happens right after it was said is to be seen too.
    const events = this.#options.rota.events({ sessionKey, signal });
    const sent = await begin().catch((error) => {
      enough.abort();
      throw error;
    });
    if (sent === null) return enough.abort();
    const { clock } = this.#options;
    const timer = timeoutMs === undefined ? null : clock.setTimer(timeoutMs, () => enough.abort());
    response.writeHead(200, STREAM_HEADERS).flushHeaders();
    void this.#send(events, response, {
      opening: () => `event: accepted\ndata: ${JSON.stringify(sent)}\n\n`,
      fits: ({ type, taskId }) => taskId === sent.taskId && type !== "batch.completed",
      isLast: ({ state }) => isTerminal(state),
    }).then((hasEnded) => {
      timer?.cancel();
      if (!hasEnded && gone.aborted) onGone(sent);
    });
  }

  /** Ends all streams; those who listened connect again, and go on where they were. */
  close(): void {
    this.#closing.abort();
  }

  /** Takes a place for a request; answers a signal that fires when whoever made it goes away. */
  #enter(response: ServerResponse): AbortSignal {
    if (this.#closing.signal.aborted) throw new RotaError("draining", "this node is stopping");
    const gone = new AbortController();
    const giveBack = this.#places.take();
    // Comes in any case, also after an answer that refuses the stream.
    response.once("close", () => {
      giveBack();
      gone.abort();
    });
    return gone.signal;
  }

  /** Answers whether the last event was told. */
  async #send(
    events: Events,
    response: ServerResponse,
    { opening, fits = () => true, isLast = () => false }: StreamPlan,
  ): Promise<boolean> {
    const stopHeartbeat = this.#heartbeat(events, response);
    try {
      await events.ready;
      response.write(opening());
      for await (const event of events) {
        if (!fits(event)) continue;
        // The next event is not even asked for before there is room for it: what a slow reader has not read stays
        // where it is, in the storage.
        if (!response.write(frame(event))) await drained(response);
        if (isLast(event)) return true;
      }
    } catch (error) {
      // The answer has begun, so that it can only end. Whoever listens connects again and goes on where it was.
      this.#options.log.debug({ error }, "an event stream ended early");
    } finally {
      stopHeartbeat();
      response.end();
    }
    return false;
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
