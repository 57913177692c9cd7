import { closeSync, fdatasync, openSync, readSync, writeSync } from "node:fs";
import { isWholeWal, readWalEnd, walBytes } from "./wal-file.ts";

/**
 * Makes commits durable without blocking the thread that makes them. SQLite runs with `synchronous = NORMAL`, so a commit only
 * appends to the write-ahead log; this class flushes that file in libuv's thread pool. One flush covers every commit before it,
 * so callers that wait at the same time share one.
 *
 * A failed flush is never simply retried: the operating system may have marked pages that it could not write as clean, and a
 * second flush would succeed without them. After a failure nothing counts as durable until `writeAnew` succeeds.
 */
export class WalSync {
  readonly #path: string;
  readonly #file: number;
  readonly #flush: FlushFile;
  #committed = 0;
  #durable = 0;
  #running: Promise<void> | null = null;
  #failure: unknown = null;
  #writing: Promise<void> | null = null;

  /** `path` is that of the database. `flush` is replaced by tests that simulate a power cut or a broken disk. */
  constructor(path: string, flush: FlushFile = flushFile) {
    this.#path = path;
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

  /** Resolves once everything committed before this call is on the disk. */
  async durable(): Promise<void> {
    const target = this.#committed;
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
    try {
      await this.#flush(this.#file);
      this.#durable = covered;
    } catch (error) {
      this.#failure = error;
      throw error;
    } finally {
      this.#running = null;
    }
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
    await this.#flush(this.#file);
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

export type FlushFile = (file: number) => Promise<void>;

function flushFile(file: number): Promise<void> {
  return new Promise((resolve, reject) => {
    fdatasync(file, (error) => (error ? reject(error) : resolve()));
  });
}
