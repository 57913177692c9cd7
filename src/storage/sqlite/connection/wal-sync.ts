import { closeSync, fdatasync, fdatasyncSync, openSync, readSync, writeSync } from "node:fs";
import type { Clock } from "../../../model/clock.ts";
import { isWholeWal, readWalEnd, walBytes } from "./wal-file.ts";

/** Passing a flush to another thread and back takes so long. */
export const HANDOVER_MS = 0.045;
/**
 * On a disk that flushes in less than this, a lone caller is better off without, and this thread stands still for less than a large
 * transaction takes. That is a prediction from the flushes before: when a disk becomes slow, one flush stops this thread for as long
 * as it takes.
 */
const FAST_MS = 0.5;
/** So many flushes must have been fast before one may stop this thread. */
export const FAST_FLUSHES_MIN = 8;
/**
 * Each slow flush adds as many as would have saved its time, up to this. So slow ones stop this thread for less time than fast ones
 * save, and a disk of which each hundredth flush takes a millisecond or two still counts as fast.
 */
export const FAST_FLUSHES_MAX = 1_024;

/**
 * Makes commits durable without blocking the thread that makes them. SQLite runs with `synchronous = NORMAL`, so a commit only
 * appends to the write-ahead log; this class flushes that file in libuv's thread pool. One flush covers every commit before it,
 * so callers that wait at the same time share one. For a lone caller this thread flushes, as long as that is fast.
 *
 * A failed flush is never simply retried: the operating system may have marked pages that it could not write as clean, and a
 * second flush would succeed without them. After a failure nothing counts as durable until `writeAnew` succeeds.
 */
export class WalSync {
  readonly #path: string;
  readonly #file: number;
  readonly #clock: Clock;
  readonly #flush: LogFlush;
  /** How many flushes must still be fast before one may stop this thread. */
  #fastNeeded = FAST_FLUSHES_MIN;
  #committed = 0;
  #durable = 0;
  #running: Promise<void> | null = null;
  #failure: unknown = null;
  #writing: Promise<void> | null = null;

  /** `path` is that of the database. `flush` is replaced by tests that simulate a power cut or a broken disk. */
  constructor(path: string, clock: Clock, flush: LogFlush = FILE_FLUSH) {
    this.#path = path;
    this.#clock = clock;
    this.#file = openSync(`${path}-wal`, "r+");
    this.#flush = flush;
  }

  /** The error of the failed flush; null: all flushes succeeded. */
  get failure(): unknown {
    return this.#failure;
  }

  /** Call this after each commit. */
  committed(): void {
    this.#committed += 1;
  }

  /** Call this when SQLite itself failed to flush a file. */
  failed(error: unknown): void {
    this.#failure ??= error;
  }

  /** Resolves once everything committed before this call is on the disk. `hasSingleWaiter`: probably no other caller waits for it. */
  async durable({ hasSingleWaiter = false } = {}): Promise<void> {
    const target = this.#committed;
    if (hasSingleWaiter && this.#durable < target && this.#mayFlushInThisThread) this.#flushInThisThread();
    while (this.#durable < target) {
      if (this.#failure !== null) throw this.#failure;
      this.#running ??= this.#flushOnce();
      await this.#running;
    }
  }

  /**
   * Recovers from a failed flush, while nothing is committed. It writes the whole log a second time, so that the next flush has
   * to write it to the disk. Then `checkpoint` writes it back into the database file and starts an empty log.
   */
  writeAnew(checkpoint: () => void): Promise<void> {
    this.#writing ??= this.#writeAnew(checkpoint).finally(() => {
      this.#writing = null;
    });
    return this.#writing;
  }

  async close(): Promise<void> {
    await Promise.all([this.#running, this.#writing].map((each) => each?.catch(() => undefined)));
    closeSync(this.#file);
  }

  async #flushOnce(): Promise<void> {
    // The flush may or may not cover commits made while it runs, so they wait for the next.
    const covered = this.#committed;
    const begun = this.#clock.monotonic();
    try {
      await this.#flush.inThreadPool(this.#file);
      this.#flushed(covered, begun);
    } catch (error) {
      this.#failure = error;
      throw error;
    } finally {
      this.#running = null;
    }
  }

  get #mayFlushInThisThread(): boolean {
    return this.#fastNeeded === 0 && this.#running === null && this.#failure === null;
  }

  #flushInThisThread(): void {
    const begun = this.#clock.monotonic();
    try {
      this.#flush.inThisThread(this.#file);
      this.#flushed(this.#committed, begun);
    } catch (error) {
      this.#failure = error;
      throw error;
    }
  }

  #flushed(covered: number, begun: number): void {
    this.#durable = covered;
    const tookMs = this.#clock.monotonic() - begun;
    const needed =
      tookMs < FAST_MS ? this.#fastNeeded - 1 : this.#fastNeeded + Math.ceil(tookMs / HANDOVER_MS);
    this.#fastNeeded = Math.min(Math.max(needed, 0), FAST_FLUSHES_MAX);
  }

  async #writeAnew(checkpoint: () => void): Promise<void> {
    await this.#running?.catch(() => undefined);
    const covered = this.#committed;
    const end = readWalEnd(`${this.#path}-shm`);
    const bytes = Buffer.alloc(walBytes(end));
    readSync(this.#file, bytes, 0, bytes.length, 0);
    // The system may also have dropped the pages that it could not write. Then this reads what is on the disk.
    if (!isWholeWal(bytes, end)) throw new LostPagesError();
    for (let at = 0; at < bytes.length; ) at += writeSync(this.#file, bytes, at, bytes.length - at, at);
    await this.#flush.inThreadPool(this.#file);
    checkpoint();
    this.#durable = covered;
    this.#failure = null;
  }
}

/** The last commits are neither on the disk nor in memory any more. */
export class LostPagesError extends Error {
  constructor() {
    super(
      "the operating system lost the last writes: restart Rota, which continues from the disk; no acknowledged task is missing there",
    );
  }
}

/** Two ways to flush a file. */
export interface LogFlush {
  /** In another thread, while this one goes on. */
  inThreadPool(file: number): Promise<void>;
  /** In this thread, which waits for the disk. */
  inThisThread(file: number): void;
}

const FILE_FLUSH: LogFlush = {
  inThreadPool: (file) =>
    new Promise((resolve, reject) => {
      fdatasync(file, (error) => (error ? reject(error) : resolve()));
    }),
  inThisThread: fdatasyncSync,
};
