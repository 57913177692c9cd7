import type { RotaEvent } from "../../../src/client/index.ts";
import type { Channel, FeedStatus, TabMessage } from "./channel.ts";
import type { Leadership } from "./leadership.ts";
import { Store } from "./store.ts";

/** Events within this time are delivered together. */
const FLUSH_MS = 50;
/** Above this rate, events are no longer delivered one by one. */
const BUSY_PER_SEC = 200;
/** They are again after the rate was below half of that for this long. */
const CALM_MS = 3_000;
/** How soon to reopen a stream that could not be opened at all. */
const REOPEN_MS = 3_000;
/** A tab that is hidden for this long gives the stream to a visible one. */
const HIDDEN_MS = 60_000;

export interface LiveFeedOptions {
  readonly id: string;
  readonly channel: Channel;
  readonly leadership: Leadership;
  /** Opens the stream of events. `onStatus` reports whether it is connected. */
  readonly open: (options: {
    readonly after: number | undefined;
    readonly signal: AbortSignal;
    readonly onGap: () => void;
    readonly onStatus: (status: "connecting" | "live" | "lost") => void;
  }) => AsyncIterable<RotaEvent> & { readonly position: number | undefined };
  /** Whether the server refuses the key. Then the stream is not reopened. */
  readonly isRefusal: (error: unknown) => boolean;
  readonly onRefused: () => void;
  readonly onSignedOut: () => void;
}

export interface LiveListener {
  /** In order, each once. */
  readonly onEvents: (events: readonly RotaEvent[]) => void;
  /** Something changed, but the events are unknown: a gap, a busy server, or a tab that was hidden. */
  readonly onChanged: () => void;
}

/**
 * Events for all tabs of a browser over one connection. A browser opens only six connections to a server, so with a stream in
 * each tab the seventh tab would not load. One tab reads and forwards the events to the others. When it is gone, the next one
 * resumes after the last event that it received.
 */
export class LiveFeed {
  readonly status = new Store<FeedStatus>("connecting");
  readonly #options: LiveFeedOptions;
  readonly #listeners = new Set<LiveListener>();
  #seq: number | undefined;
  #isLeading = false;
  #isRefused = false;
  /** Whether this tab or another one has read a stream. From then on no event may be missed. */
  #isBegun = false;
  #buffer: RotaEvent[] = [];
  #flushing: ReturnType<typeof setTimeout> | undefined;
  #window = { startedAt: 0, count: 0 };
  #busyUntil = 0;
  #hiding: ReturnType<typeof setTimeout> | undefined;
  #isAway = false;
  #stopListening: (() => void) | undefined;

  constructor(options: LiveFeedOptions) {
    this.#options = options;
  }

  start(): void {
    const { channel, id } = this.#options;
    this.#stopListening = channel.listen((message) => this.#receive(message));
    channel.post({ kind: "who", from: id });
    this.#join();
  }

  /** `signedOut`: signs out of all tabs. */
  stop({ signedOut = false } = {}): void {
    const { channel, leadership, id } = this.#options;
    if (signedOut) channel.post({ kind: "signed-out", from: id });
    clearTimeout(this.#flushing);
    clearTimeout(this.#hiding);
    leadership.leave();
    this.#stopListening?.();
    // The last message is still being delivered.
    setTimeout(() => channel.close(), FLUSH_MS);
  }

  subscribe(listener: LiveListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** After a while a hidden tab stops reading. It refetches everything when it is shown again. */
  setHidden(isHidden: boolean): void {
    clearTimeout(this.#hiding);
    if (isHidden) {
      this.#hiding = setTimeout(() => {
        this.#isAway = true;
        this.#options.leadership.leave();
      }, HIDDEN_MS);
    } else if (this.#isAway) {
      this.#isAway = false;
      // Everything is refetched, so missed events are not needed.
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
      // Without a position the stream cannot resume: events between two streams are missed.
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
      // If no further event comes, nothing else would end the busy state.
      setTimeout(() => this.#settle(), CALM_MS);
      return;
    }
    this.#post({ kind: "events", events });
    this.#publish(events);
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

  #receive(message: TabMessage): void {
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

  /** Handles messages of the leader, in a tab that does not lead. */
  #follow(message: TabMessage): void {
    if (message.kind === "at") {
      this.#isBegun ||= message.status === "live";
      this.#seq = message.seq ?? this.#seq;
      this.status.set(message.status);
    } else if (message.kind === "events") {
      this.#seq = message.events.at(-1)?.seq ?? this.#seq;
      this.#publish(message.events);
    } else if (message.kind === "changed") {
      this.#seq = message.seq;
      this.#changed();
    }
  }

  #publish(events: readonly RotaEvent[]): void {
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
