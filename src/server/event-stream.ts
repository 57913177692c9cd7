import type { ServerResponse } from "node:http";
import type { LocalKeys } from "../interface/keys.ts";
import type { Notifications, NotificationsOptions } from "../interface/notifications.ts";
import type { Events, EventsOptions } from "../interface/rota.ts";
import type { SentMessage } from "../interface/sessions.ts";
import type { WorkerSignalFeed } from "../interface/workers.ts";
import type { Clock } from "../model/clock.ts";
import { RotaError } from "../model/errors.ts";
import type { RotaEvent } from "../model/event.ts";
import type { Log } from "../model/log.ts";
import { isTerminal } from "../model/task-state.ts";
import { WORKERS_MAX } from "../model/worker.ts";
import { TurnBudget } from "../services/turn-budget.ts";
import type { CallerContext } from "./caller-context.ts";
import type { ChargedTo } from "./middleware/request-limits.ts";
import type { Replays } from "./replays.ts";
import { RequestSlots } from "./request-slots.ts";
import { ResponseStream } from "./response-stream.ts";
import {
  eventFrame,
  gapFrame,
  notificationFrame,
  positionLine,
  RECONNECT,
  signalFrame,
} from "./stream-frames.ts";

/** Proxies close idle connections, many after 30 or 60 seconds. */
const HEARTBEAT_MS = { events: 15_000, notifications: 30_000, signals: 15_000 } as const;
/** Each takes less than 50 KiB as long as it is read. */
const STREAMS_MAX = 4_000;
const STREAMS_PER_KEY_MAX = 1_000;
/** Streams of workers, besides: each worker has one, and the previous one for a moment. */
const SIGNAL_STREAMS_MAX = 2 * WORKERS_MAX;
/** How much all streams write in one turn of the event loop: some milliseconds. */
const WRITTEN_PER_TURN = { pieces: 100, bytes: 524_288 } as const;

export const STREAM_HEADERS = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-store",
  "x-content-type-options": "nosniff",
  // Proxies like nginx would buffer events instead of passing them on.
  "x-accel-buffering": "no",
  // A stream is the last response on its connection, so that an idle connection does not delay the close of the server.
  connection: "close",
} as const;

export interface EventStreamsOptions {
  readonly keys: Pick<LocalKeys, "watch">;
  readonly clock: Clock;
  readonly log: Log;
  /** Schedules the reads of past events. */
  readonly replays: Replays;
  readonly hasSecondTenant: () => boolean;
  /** For tests: the most streams at once, in all and with one key. */
  readonly max?: number;
  readonly maxPerKey?: number;
}

/** The items of a stream, in order. */
interface Feed<Item> extends AsyncIterable<Item> {
  readonly ready: Promise<void>;
  readonly position: number | undefined;
}

/** How a stream writes its items, and when it ends by itself. */
interface StreamPlan<Item> {
  readonly opening: () => string;
  readonly frame: (item: Item) => Buffer;
  readonly heartbeat: { readonly everyMs: number; readonly text: () => string };
  readonly fits?: (item: Item) => boolean;
  readonly isLast?: (item: Item) => boolean;
}

/** The target of a stream, and the owner whose turns it uses. */
interface Sink {
  readonly stream: ResponseStream;
  readonly tenant: string;
}

/** The caller who reads a stream. The stream ends when their key is deleted or expires. */
type Reader = Pick<CallerContext, "key"> & {
  readonly caller: Pick<CallerContext["caller"], "keyId" | "tenant">;
  readonly rota: Pick<CallerContext["rota"], "events" | "notifications">;
};

export interface RunStream {
  readonly callerContext: Reader;
  readonly sessionKey: string;
  /** Ends the stream after this time, even if its task has not ended. Undefined: no timeout. */
  readonly timeoutMs: number | undefined;
  /** Sends the message. Null: there is no task to follow. */
  readonly begin: () => Promise<SentMessage | null>;
  /** Called when the reader disconnects before the last event: cancels the task, if the reader wants that. */
  readonly onGone: (sent: SentMessage) => Promise<void>;
}

/** Server-sent events for any number of readers, each at the pace at which it reads. */
export class EventStreams {
  readonly #options: EventStreamsOptions;
  readonly #slots: RequestSlots;
  readonly #signalSlots: RequestSlots;
  readonly #open = new Set<ResponseStream>();
  readonly #turns = new TurnBudget<string>(WRITTEN_PER_TURN);
  #closing = false;

  constructor(options: EventStreamsOptions) {
    this.#options = options;
    const { max = STREAMS_MAX, maxPerKey = STREAMS_PER_KEY_MAX, hasSecondTenant } = options;
    this.#slots = new RequestSlots({ max, maxEach: maxPerKey, what: "event streams", hasSecondTenant });
    this.#signalSlots = new RequestSlots({
      ...{ max: SIGNAL_STREAMS_MAX, maxEach: SIGNAL_STREAMS_MAX },
      what: "streams of workers",
      hasSecondTenant,
    });
  }

  /** How many are open. */
  get size(): number {
    return this.#slots.taken + this.#signalSlots.taken;
  }

  /** Opens a stream, which lasts until the reader disconnects or the server closes. Throws only before the response begins. */
  open(response: ServerResponse, reader: Reader, options: Omit<EventsOptions, "signal" | "onGap">): void {
    const stream = this.#enter(response, reader);
    const { reading, missing } = this.#readingFor(reader, stream, () => events);
    const events: Events = reader.rota.events({ ...options, ...reading });
    stream.begin(STREAM_HEADERS);
    void this.#send(
      events,
      { stream, tenant: reader.caller.tenant },
      {
        opening: () => `${RECONNECT}${positionLine(events)}\n${missing()}`,
        ...eventPlan(events),
      },
    );
  }

  /** The same for the notifications of schedules and their runs. */
  openNotifications(
    response: ServerResponse,
    reader: Reader,
    options: Pick<NotificationsOptions, "after">,
  ): void {
    const stream = this.#enter(response, reader);
    const { reading, missing } = this.#readingFor(reader, stream, () => notifications);
    const notifications: Notifications = reader.rota.notifications({ ...options, ...reading });
    stream.begin(STREAM_HEADERS);
    void this.#send(
      notifications,
      { stream, tenant: reader.caller.tenant },
      {
        opening: () =>
          `${RECONNECT}${positionLine(notifications)}event: open\ndata: {"ok":true}\n\n${missing()}`,
        frame: notificationFrame,
        heartbeat: { everyMs: HEARTBEAT_MS.notifications, text: () => ": heartbeat\n\n" },
      },
    );
  }

  /**
   * Opens a stream about one message: first `accepted`, then the events of its task up to the last. Rethrows what `begin` throws.
   * If `begin` returns null, no stream is opened.
   */
  async openRun(
    response: ServerResponse,
    { callerContext, sessionKey, timeoutMs, begin, onGone }: RunStream,
  ): Promise<void> {
    const stream = this.#enter(response, callerContext);
    // Subscribes before the message is sent, so that its first events are not missed.
    const { reading, missing } = this.#readingFor(callerContext, stream, () => events);
    const events: Events = callerContext.rota.events({ sessionKey, ...reading });
    const sent = await begin().catch((error) => {
      stream.stop();
      throw error;
    });
    if (sent === null) return stream.stop();
    const { clock, log } = this.#options;
    const timer = timeoutMs === undefined ? null : clock.setTimer(timeoutMs, () => stream.stop());
    stream.begin(STREAM_HEADERS);
    void this.#send(
      events,
      { stream, tenant: callerContext.caller.tenant },
      {
        opening: () => `event: accepted\ndata: ${JSON.stringify(sent)}\n\n${missing()}`,
        ...eventPlan(events),
        fits: ({ type, taskId }) => taskId === sent.taskId && type !== "batch.completed",
        isLast: ({ state }) => isTerminal(state),
      },
    )
      .then(async (hasEnded) => {
        timer?.cancel();
        if (!hasEnded && stream.gone) await onGone(sent);
      })
      // No caller is left. Without a handler the rejection would end the process.
      .catch((error) => log.error({ error }, "could not cancel the task of a reader that disconnected"));
  }

  /** Opens the stream of a worker. Rethrows what `begin` throws. */
  async openSignals(
    response: ServerResponse,
    reader: Pick<Reader, "key" | "caller">,
    begin: () => Promise<WorkerSignalFeed>,
  ): Promise<void> {
    const stream = this.#enter(response, reader, this.#signalSlots);
    const signals = await begin().catch((error) => {
      stream.stop();
      throw error;
    });
    stream.stopped.addEventListener("abort", () => signals.end());
    if (stream.stopped.aborted) return signals.end();
    stream.begin(STREAM_HEADERS);
    void this.#send(
      Object.assign(signals, { ready: Promise.resolve(), position: undefined }),
      { stream, tenant: reader.caller.tenant },
      {
        opening: () => `${RECONNECT}event: open\ndata: {"ok":true}\n\n`,
        frame: signalFrame,
        heartbeat: { everyMs: HEARTBEAT_MS.signals, text: () => ": still here\n\n" },
      },
    );
  }

  /** Ends all streams. Readers connect again and resume where they were. */
  close(): void {
    this.#closing = true;
    for (const stream of this.#open) stream.stop();
  }

  /** Takes one of the slots for streams. Throws `rate_limited` if there is none. */
  #enter(
    response: ServerResponse,
    { key, caller: { tenant } }: Pick<Reader, "key" | "caller">,
    slots = this.#slots,
  ): ResponseStream {
    if (this.#closing)
      throw new RotaError("draining", "this node is stopping: connect to another node, or retry later");
    const freeSlot = slots.take({ key, tenant });
    const { keys, clock, log } = this.#options;
    const watch = key === null ? null : keys.watch(key);
    const stream = new ResponseStream(response, {
      clock,
      onDropped: () => log.debug({}, "dropped a reader of an event stream that stopped reading"),
      // Also called after a response that refuses the stream.
      onClosed: () => {
        freeSlot();
        watch?.stop();
        this.#open.delete(stream);
      },
    });
    watch?.gone.addEventListener("abort", () => stream.stop());
    this.#open.add(stream);
    return stream;
  }

  /** Returns whether the last event was sent. */
  async #send<Item>(feed: Feed<Item>, { stream, tenant }: Sink, plan: StreamPlan<Item>): Promise<boolean> {
    const turns = this.#turns;
    const { opening, frame, fits = () => true, isLast = () => false } = plan;
    const stopHeartbeat = this.#beat(stream, plan.heartbeat);
    try {
      await feed.ready;
      await stream.write(Buffer.from(opening()));
      for await (const item of feed) {
        if (!fits(item)) continue;
        if (turns.isOver) await turns.next(tenant);
        const bytes = frame(item);
        turns.used(bytes.length);
        // The next item is read only once there is room for it. What a slow reader has not read yet stays in the storage.
        await stream.write(bytes);
        if (isLast(item)) return true;
      }
    } catch (error) {
      // The response has begun, so it cannot become an error. The reader connects again and resumes where it was.
      if (!stream.stopped.aborted) this.#options.log.debug({ error }, "an event stream ended early");
    } finally {
      stopHeartbeat();
      stream.end();
    }
    return false;
  }

  /**
   * The reader of a stream, and the gap event to send first if events are missing. A gap that appears later, after a restore of
   * the database, is sent when the reader reaches it.
   */
  #readingFor({ caller }: Reader, stream: ResponseStream, feed: () => Pick<Feed<never>, "position">) {
    let missing = "";
    let hasBegun = false;
    return {
      reading: {
        signal: stream.stopped,
        onGap: (gap: { readonly after: number; readonly oldest: number }) => {
          if (hasBegun) void stream.write(Buffer.from(gapFrame(gap, feed())));
          else missing = gapFrame(gap);
        },
        onBehind: () => stream.pileUp(),
        pace: this.#options.replays.paceOf(chargedTo(caller), stream.stopped),
      },
      missing: () => {
        hasBegun = true;
        return missing;
      },
    };
  }

  #beat(stream: ResponseStream, { everyMs, text }: StreamPlan<never>["heartbeat"]): () => void {
    const { clock } = this.#options;
    const beat = () => {
      stream.writeIfRead(text());
      timer = clock.setTimer(everyMs, beat);
    };
    let timer = clock.setTimer(everyMs, beat);
    return () => timer.cancel();
  }
}

/** Null: the server has no keys. */
function chargedTo({ keyId, tenant }: Reader["caller"]): ChargedTo | null {
  return keyId === null ? null : { key: keyId, tenant };
}

function eventPlan(events: Feed<RotaEvent>): Pick<StreamPlan<RotaEvent>, "frame" | "heartbeat"> {
  return {
    frame: eventFrame,
    heartbeat: { everyMs: HEARTBEAT_MS.events, text: () => `: still here\n${positionLine(events)}\n` },
  };
}
