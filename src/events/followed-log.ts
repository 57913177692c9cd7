import type { Clock, Timer } from "../model/clock.ts";
import type { Log } from "../model/log.ts";
import type { LogMark } from "../storage/storage.ts";
import { LogCursor } from "./log-cursor.ts";

/** A signal may be lost: look at least this often while somebody listens. */
const POLL_MS = 5_000;
/** A storage that is away is asked again after this. */
const RETRY_MS = 500;
/** How long to wait for listeners to be told of the last entries: they can read on later. */
const CATCH_UP_MS = 1_000;

/** What the storage keeps in order and only ever adds to. */
export interface LogSource<Value> {
  /** What its entries are called, as in "cannot read events". */
  readonly name: string;
  /** A page of entries after `after`, oldest first. */
  read(after: number): Promise<LogPage<Value>>;
  /** The highest number there ever was (0: none yet), and the oldest entry that is still there, or the number after the highest. */
  range(): Promise<{ readonly oldest: number; readonly newest: number }>;
  /** What the entry of this number is known by; null: there is none. */
  mark(seq: number): Promise<LogMark | null>;
  /** The number of the last entry written no later than `at`; 0: none. */
  lastUntil(at: number): Promise<number>;
  /** Whether entries are deleted that others are older than. */
  readonly leavesHoles: boolean;
}

export interface LogPage<Value> {
  readonly entries: readonly LogEntry<Value>[];
  /** There may be others right after them. */
  readonly more: boolean;
  /** Everything up to this number has been looked at: go on after it. */
  readonly upTo: number;
  /** An upper bound of the entries read for this page. */
  readonly looked: number;
  /** What the entry before the page is known by, the one that was asked after; null: there is none. */
  readonly mark: LogMark | null;
}

export interface LogEntry<Value> {
  readonly seq: number;
  readonly value: Value;
  /** What it takes, about. */
  readonly bytes: number;
  readonly mark: LogMark;
}

export type LogListener<Value> = (value: Value, entry: LogEntry<Value>) => void;

/** What a listener may want to know besides the entries. */
export interface LogNotices {
  /** The log is closed. */
  readonly onClose?: () => void;
  /** The database was restored to an earlier state: entries come next whose numbers are above `resumeAfter`. */
  readonly onRestored?: (restored: { readonly resumeAfter: number }) => void;
}

export interface FollowedLogOptions {
  readonly clock: Clock;
  readonly log: Log;
  /** Called when the database turns out to have been restored to an earlier state. */
  readonly onRestored?: () => void;
}

/**
 * Follows a log, once for the whole process and only while somebody listens, and hands every entry on in order. A
 * listener must return at once: whoever needs time keeps a buffer, as `LogReader` does.
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

  /** The number of the last entry handed on. */
  get position(): number {
    return this.#cursor.seq;
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
   * Resolves once what has happened by now has been handed on, or takes too long: for whoever is about to close the
   * listeners there are.
   */
  async caughtUp(): Promise<void> {
    if (this.#listeners.size === 0) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = this.#clock.setTimer(CATCH_UP_MS, resolve);
    let newest = Number.POSITIVE_INFINITY;
    const look = () => {
      if (this.position >= newest) resolve();
    };
    // Behind all others in line: what it is told, they have been told.
    const stop = this.listen(look, { onClose: resolve });
    this.source.range().then((range) => {
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
        // Between full pages everybody else gets a turn.
        else await new Promise((resolve) => setImmediate(resolve));
      } catch (error) {
        if (failures++ === 0) this.#warn(error);
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
