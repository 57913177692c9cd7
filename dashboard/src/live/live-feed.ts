import type { RotaEvent } from "../../../src/client/index.ts";
import type { Channel, FeedStatus, TabMessage } from "./channel.ts";
import type { Leadership } from "./leadership.ts";
import { Store } from "./store.ts";

/** Events that come within this time are handed on together. */
const FLUSH_MS = 50;
/** Beyond so many events a second they are no longer told one by one. */
const BUSY_PER_SEC = 200;
/** And are again once there were fewer than half of that for so long. */
const CALM_MS = 3_000;
/** How soon a stream is opened again that could not be opened at all. */
const REOPEN_MS = 3_000;
/** A tab that is hidden for this long gives the stream to a visible one. */
const HIDDEN_MS = 60_000;

export interface LiveFeedOptions {
  readonly id: string;
  readonly channel: Channel;
  readonly leadership: Leadership;
  /** Opens the stream of events; `onStatus` says whether it is connected. */
  readonly open: (options: {
    readonly after: number | undefined;
    readonly signal: AbortSignal;
    readonly onGap: () => void;
    readonly onStatus: (status: "connecting" | "live" | "lost") => void;
  }) => AsyncIterable<RotaEvent> & { readonly position: number | undefined };
  /** Whether the server refuses the key: there is nothing to wait for then. */
  readonly isRefusal: (error: unknown) => boolean;
  readonly onRefused: () => void;
  readonly onSignedOut: () => void;
}

export interface LiveListener {
  /** In order, each once. */
  readonly onEvents: (events: readonly RotaEvent[]) => void;
  /** Something changed, and the events do not say what: a gap, a busy server, or a tab that slept. */
  readonly onChanged: () => void;
}

/**
 * What happens, for all tabs of a browser over one connection: a browser opens six to a server, so that with a stream in each tab
 * the seventh would not load. One tab reads and tells the others; when it is gone the next one reads on after the last event that
 * it was told of.
 */
export class LiveFeed {
  readonly status = new Store<FeedStatus>("connecting");
  readonly #options: LiveFeedOptions;
  readonly #listeners = new Set<LiveListener>();
  #seq: number | undefined;
  #isLeading = false;
  #isRefused = false;
  /** A stream was read, by this tab or another one: what happened since then must not be missed. */
  #isBegun = false;
  #buffer: RotaEvent[] = [];
  #flushing: ReturnType<typeof setTimeout> | undefined;
  #window = { startedAt: 0, count: 0 };
  #busyUntil = 0;
  #hiding: ReturnType<typeof setTimeout> | undefined;
  #isAway = false;
  #deaf: (() => void) | undefined;

  constructor(options: LiveFeedOptions) {
    this.#options = options;
  }

  start(): void {
    const { channel, id } = this.#options;
    this.#deaf = channel.listen((message) => this.#hear(message));
    channel.post({ kind: "who", from: id });
    this.#join();
  }

  /** `signedOut`: the same in all tabs. */
  stop({ signedOut = false } = {}): void {
    const { channel, leadership, id } = this.#options;
    if (signedOut) channel.post({ kind: "signed-out", from: id });
    clearTimeout(this.#flushing);
    clearTimeout(this.#hiding);
    leadership.leave();
    this.#deaf?.();
    // What was posted last is still on its way.
    setTimeout(() => channel.close(), FLUSH_MS);
  }

  subscribe(listener: LiveListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Nobody sees a hidden tab: after a while it reads nothing, and looks again when it is shown. */
  setHidden(isHidden: boolean): void {
    clearTimeout(this.#hiding);
    if (isHidden) {
      this.#hiding = setTimeout(() => {
        this.#isAway = true;
        this.#options.leadership.leave();
      }, HIDDEN_MS);
    } else if (this.#isAway) {
      this.#isAway = false;
      // Everything is read anew, so that what happened meanwhile need not be told.
      this.#seq = undefined;
      this.#isBegun = false;
      this.#join();
      this.#changed();
    }
  }

  #join(): void {
    this.#options.leadership.join((signal) => this.#lead(signal));
  }

  async #lead(signal: AbortSignal): Promise<void> {
    const { open, isRefusal } = this.#options;
    this.#isLeading = true;
    while (!signal.aborted && !this.#isRefused) {
      const after = this.#seq;
      // Without an event there is no place to go on from: what happened between two streams is not told.
      let mayHaveMissed = this.#isBegun && after === undefined;
      const onStatus = (status: "connecting" | "live" | "lost") => {
        this.#say(status);
        if (status === "live" && mayHaveMissed) this.#gap();
        if (status === "live") mayHaveMissed = false;
      };
      try {
        const stream = open({ after, signal, onGap: () => this.#gap(), onStatus });
        for await (const event of stream) this.#take(event);
      } catch (error) {
        if (signal.aborted) break;
        if (isRefusal(error)) {
          this.#refused();
          break;
        }
      }
      if (signal.aborted) break;
      this.#say("lost");
      await pause(REOPEN_MS, signal);
    }
    this.#isLeading = false;
  }

  #refused(): void {
    if (this.#isRefused) return;
    this.#isRefused = true;
    if (this.#isLeading) this.#post({ kind: "refused" });
    this.#options.onRefused();
  }

  #take(event: RotaEvent): void {
    this.#seq = event.seq;
    this.#buffer.push(event);
    this.#count();
    this.#flushing ??= setTimeout(() => this.#flush(), FLUSH_MS);
  }

  #count(): void {
    const now = performance.now();
    if (now - this.#window.startedAt >= 1_000) this.#window = { startedAt: now, count: 0 };
    this.#window.count += 1;
    const isCalm = now >= this.#busyUntil;
    if (this.#window.count > (isCalm ? BUSY_PER_SEC : BUSY_PER_SEC / 2)) {
      this.#busyUntil = now + CALM_MS;
      if (isCalm) this.#say("busy");
    } else if (isCalm && this.status.get() === "busy") {
      this.#say("live");
    }
  }

  #flush(): void {
    const events = this.#buffer;
    this.#buffer = [];
    this.#flushing = undefined;
    if (events.length === 0) return;
    if (performance.now() < this.#busyUntil) {
      this.#post({ kind: "changed", seq: this.#seq ?? 0 });
      this.#changed();
      // The last event of a burst is delivered as well.
      setTimeout(() => this.#settle(), CALM_MS);
      return;
    }
    this.#post({ kind: "events", events });
    this.#tell(events);
  }

  #settle(): void {
    if (this.status.get() === "busy" && performance.now() >= this.#busyUntil) this.#say("live");
  }

  #gap(): void {
    this.#post({ kind: "gap" });
    this.#changed();
  }

  #say(status: FeedStatus): void {
    if (status === "live") this.#isBegun = true;
    if (status === "live" && performance.now() < this.#busyUntil) return;
    this.status.set(status);
    this.#post({ kind: "at", seq: this.#seq, status });
  }

  #hear(message: TabMessage): void {
    if (message.from === this.#options.id) return;
    const { kind } = message;
    if (kind === "who") {
      if (this.#isLeading) this.#post({ kind: "at", seq: this.#seq, status: this.status.get() });
    } else if (kind === "gap") {
      this.#changed();
    } else if (kind === "signed-out") {
      this.#options.onSignedOut();
    } else if (kind === "refused") {
      this.#refused();
    } else if (!this.#isLeading) {
      this.#follow(message);
    }
  }

  /** What the leader reads, for a tab that does not. */
  #follow(message: TabMessage): void {
    if (message.kind === "at") {
      this.#isBegun ||= message.status === "live";
      this.#seq = message.seq ?? this.#seq;
      this.status.set(message.status);
    } else if (message.kind === "events") {
      this.#seq = message.events.at(-1)?.seq ?? this.#seq;
      this.#tell(message.events);
    } else if (message.kind === "changed") {
      this.#seq = message.seq;
      this.#changed();
    }
  }

  #tell(events: readonly RotaEvent[]): void {
    for (const { onEvents } of [...this.#listeners]) onEvents(events);
  }

  #changed(): void {
    for (const { onChanged } of [...this.#listeners]) onChanged();
  }

  #post(message: WithoutSender<TabMessage>): void {
    this.#options.channel.post({ ...message, from: this.#options.id } as TabMessage);
  }
}

type WithoutSender<Message> = Message extends unknown ? Omit<Message, "from"> : never;

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(done, ms);
    function done(): void {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    }
    signal.addEventListener("abort", done);
  });
}
