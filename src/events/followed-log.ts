import { within } from "../clock/within.ts";
import type { Clock, Timer } from "../model/clock.ts";
import type { Log } from "../model/log.ts";
import { LogCursor } from "./log-cursor.ts";
import type { LogEntry, LogSource } from "./log-source.ts";

/** A signal may be lost: read at least this often while there are listeners. */
const POLL_MS = 5_000;
/** The delay before a retry while the storage is unavailable. */
const RETRY_MS = 500;
/** How long to wait until listeners have got the last entries. They can read the rest later. */
const CATCH_UP_MS = 1_000;

export type LogListener<Value> = (value: Value, entry: LogEntry<Value>) => void;

/** Callbacks of a listener besides the entries. */
export interface LogNotices {
  /** The log is closed. */
  readonly onClose?: () => void;
  /** The database was restored to an earlier state. The next entries have numbers above `resumeAfter`. */
  readonly onRestored?: (restored: { readonly resumeAfter: number }) => void;
}

export interface FollowedLogOptions {
  readonly clock: Clock;
  readonly log: Log;
  /** Called when the database turns out to have been restored to an earlier state. */
  readonly onRestored?: () => void;
}

/**
 * Follows a log, once for the whole process and only while there are listeners, and calls them with every entry in order. A
 * listener must return at once. One that needs time keeps a buffer, as `LogReader` does.
 */
export class FollowedLog<Value> {
  readonly source: LogSource<Value>;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #listeners = new Map<LogListener<Value>, LogNotices>();
  readonly #cursor: LogCursor<Value>;
  readonly #onRestored: () => void;
  #following: Promise<void> | null = null;
  #begun: Promise<void> = Promise.resolve();
  #tried: Promise<void> | null = null;
  #closed = false;
  #woken = false;
  #sleeper: { timer: Timer; wake: () => void } | null = null;

  constructor(source: LogSource<Value>, { clock, log, onRestored = () => {} }: FollowedLogOptions) {
    this.source = source;
    this.#clock = clock;
    this.#log = log;
    this.#cursor = new LogCursor(source);
    this.#onRestored = onRestored;
  }

  /** The number of the last entry that listeners were called with. */
  get position(): number {
    return this.#cursor.seq;
  }

  /** Resolves once the current listeners will get every later entry. */
  get ready(): Promise<void> {
    return this.#begun;
  }

  /**
   * Like `ready`, but also resolves if the storage is unavailable. For callers about to write something that listeners should
   * get: they must not wait for the storage, but get its error. Null: there is nothing to wait for.
   */
  get tried(): Promise<void> | null {
    return this.#tried;
  }

  /** Whether there are listeners. */
  get isFollowed(): boolean {
    return this.#listeners.size > 0;
  }

  /** Calls `listener` with every entry after `ready` has resolved, until the returned function is called. */
  listen(listener: LogListener<Value>, notices: LogNotices = {}): () => void {
    if (this.#closed) {
      queueMicrotask(() => notices.onClose?.());
      return () => {};
    }
    this.#listeners.set(listener, notices);
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
   * Resolves once the listeners have got every entry written so far, or after a timeout. To be called before the log is closed.
   */
  async caughtUp(): Promise<void> {
    if (this.#listeners.size === 0) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    let newest = Number.POSITIVE_INFINITY;
    const look = () => {
      if (this.position >= newest) resolve();
    };
    // Added last, so it is called after all other listeners.
    const stop = this.listen(look, { onClose: resolve });
    this.source.range().then((range) => {
      newest = range.newest;
      look();
    }, resolve);
    await within({ clock: this.#clock, ms: CATCH_UP_MS, work: promise, onLate: () => undefined });
    stop();
  }

  async close(): Promise<void> {
    this.#closed = true;
    const closing = [...this.#listeners.values()];
    this.#listeners.clear();
    for (const { onClose } of closing) onClose?.();
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
        // Yields to other work between full pages.
        else await new Promise((resolve) => setImmediate(resolve));
      } catch (error) {
        if (failures++ === 0) this.#warn(error);
        await this.#sleepThrough(RETRY_MS);
      }
    }
    this.#following = null;
  }

  /** Moves to the newest entry, where listening begins. Retries while the storage is unavailable. */
  async #begin(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#tried = promise;
    for (let tries = 1; this.#listeners.size > 0; tries++) {
      try {
        this.#cursor.moveTo((await this.source.range()).newest);
        break;
      } catch (error) {
        if (tries === 1) this.#warn(error);
        resolve();
        await this.#sleepThrough(RETRY_MS);
      }
    }
    resolve();
    this.#tried = null;
  }

  #warn(error: unknown): void {
    this.#log.warn({ error }, `cannot read ${this.source.name}; trying again until it works`);
  }

  async #handOnPage(): Promise<boolean> {
    this.#woken = false;
    const page = await this.#cursor.read();
    if (page === null) {
      await this.#goBack();
      return true;
    }
    for (const entry of page.entries) {
      this.#cursor.moveTo(entry.seq, entry.mark);
      for (const listener of this.#listeners.keys()) listener(entry.value, entry);
    }
    if (page.upTo > this.position) this.#cursor.moveTo(page.upTo);
    return page.more;
  }

  async #goBack(): Promise<void> {
    const after = this.position;
    await this.#cursor.resume();
    const resumeAfter = this.position;
    this.#log.warn(
      { readUpTo: after, resumeAfter },
      `the database was restored to an earlier state; readers of ${this.source.name} are sent a gap and go on from there`,
    );
    for (const { onRestored } of this.#listeners.values()) onRestored?.({ resumeAfter });
    this.#onRestored();
  }

  async #sleep(ms: number): Promise<void> {
    if (this.#woken) return;
    await this.#sleepThrough(ms);
  }

  /** `wake` ends the sleep early and cancels the timer. */
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
