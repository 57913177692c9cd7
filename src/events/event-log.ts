import type { Clock, Timer } from "../model/clock.ts";
import type { RotaEvent } from "../model/event.ts";
import type { Log } from "../model/log.ts";
import type { Storage } from "../storage/storage.ts";
import { toEvent } from "./to-event.ts";

/** What is read at once. A result can take a mebibyte, so that many of them must not be read together. */
export const PAGE = { limit: 200, bytesMax: 4 * 1_048_576 } as const;
/** A signal may be lost: look at least this often while somebody listens. */
const POLL_MS = 5_000;
/** A storage that is away is asked again after this. */
const RETRY_MS = 500;
/** How long to wait for listeners to be told of the last events: they can read on later. */
const CATCH_UP_MS = 1_000;

/** `bytes`: what the event takes, about. */
export type EventListener = (event: RotaEvent, bytes: number) => void;

export interface EventLogOptions {
  readonly storage: Storage;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Follows the log, once for the whole process and only while somebody listens, and hands every event on in order. A
 * listener must return at once: whoever needs time keeps a buffer, as `EventReader` does.
 */
export class EventLog {
  readonly storage: Storage;
  readonly #clock: Clock;
  readonly #log: Log;
  /** Each with what to call when the log is closed. */
  readonly #listeners = new Map<EventListener, () => void>();
  #following: Promise<void> | null = null;
  #begun: Promise<void> = Promise.resolve();
  #tried: Promise<void> | null = null;
  #position = 0;
  #closed = false;
  #woken = false;
  #sleeper: { timer: Timer; wake: () => void } | null = null;

  constructor({ storage, clock, log }: EventLogOptions) {
    this.storage = storage;
    this.#clock = clock;
    this.#log = log;
  }

  /** The number of the last event handed on. */
  get position(): number {
    return this.#position;
  }

  /** Resolves once what happens from now on will reach the listeners there are. */
  get ready(): Promise<void> {
    return this.#begun;
  }

  /**
   * The same, or that the storage is away: for whoever is about to do something that listeners should hear of, but
   * who must be told rather than wait.
   */
  get tried(): Promise<void> | null {
    return this.#tried;
  }

  /** Hands everything on that happens once `ready` has resolved, until the returned function is called. */
  listen(listener: EventListener, onClose: () => void = () => {}): () => void {
    if (this.#closed) {
      queueMicrotask(onClose);
      return () => {};
    }
    this.#listeners.set(listener, onClose);
    this.#following ??= this.#follow();
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size === 0) this.wake();
    };
  }

  /** There may be something to read. */
  wake(): void {
    this.#woken = true;
    this.#sleeper?.wake();
  }

  /**
   * Resolves once what has happened by now has been handed on, or takes too long: for whoever is about to close the
   * listeners there are.
   */
  async caughtUp(): Promise<void> {
    if (this.#listeners.size === 0) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = this.#clock.setTimer(CATCH_UP_MS, resolve);
    let newest = Number.POSITIVE_INFINITY;
    const look = () => {
      if (this.#position >= newest) resolve();
    };
    // Behind all others in line: what it is told, they have been told.
    const stop = this.listen(look, resolve);
    this.storage.events.range().then((range) => {
      newest = range.newest;
      look();
    }, resolve);
    await promise;
    stop();
    timer.cancel();
  }

  async close(): Promise<void> {
    this.#closed = true;
    const closing = [...this.#listeners.values()];
    this.#listeners.clear();
    for (const onClose of closing) onClose();
    this.wake();
    await this.#following;
  }

  async #follow(): Promise<void> {
    this.#begun = this.#begin();
    await this.#begun;
    let failures = 0;
    while (this.#listeners.size > 0) {
      try {
        const more = await this.#handOnPage();
        failures = 0;
        if (!more) await this.#sleep(POLL_MS);
        // Between full pages everybody else gets a turn.
        else await new Promise((resolve) => setImmediate(resolve));
      } catch (error) {
        if (failures++ === 0) this.#log.warn({ error }, "cannot read events; trying again until it works");
        await this.#sleepThrough(RETRY_MS);
      }
    }
    this.#following = null;
  }

  /** Where "from now on" begins. */
  async #begin(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#tried = promise;
    for (let tries = 1; this.#listeners.size > 0; tries++) {
      try {
        this.#position = (await this.storage.events.range()).newest;
        break;
      } catch (error) {
        if (tries === 1) this.#log.warn({ error }, "cannot read events; trying again until it works");
        resolve();
        await this.#sleepThrough(RETRY_MS);
      }
    }
    resolve();
    this.#tried = null;
  }

  async #handOnPage(): Promise<boolean> {
    this.#woken = false;
    const { events, more, upTo } = await this.storage.events.read({ after: this.#position, ...PAGE });
    for (const stored of events) {
      const event = toEvent(stored);
      this.#position = event.seq;
      for (const listener of this.#listeners.keys()) listener(event, stored.bytes);
    }
    this.#position = Math.max(this.#position, upTo);
    return more;
  }

  async #sleep(ms: number): Promise<void> {
    if (this.#woken) return;
    await this.#sleepThrough(ms);
  }

  /** Ends early when somebody wakes it, and leaves no timer behind. */
  #sleepThrough(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        this.#sleeper?.timer.cancel();
        this.#sleeper = null;
        resolve();
      };
      this.#sleeper = { timer: this.#clock.setTimer(ms, wake), wake };
    });
  }
}
