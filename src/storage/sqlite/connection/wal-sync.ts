import { closeSync, fdatasync, openSync, readSync, writeSync } from "node:fs";
import { isWholeWal, readWalEnd, walBytes } from "./wal-file.ts";

/**
 * Makes commits durable without holding up the thread that makes them. SQLite runs with `synchronous = NORMAL`, so a
 * commit only appends to the write-ahead log; this flushes that file from libuv's pool. One flush covers every
 * commit before it, so callers that wait together share one.
 *
 * A flush that failed is never simply tried again: the system may have marked what it could not write as written, and
 * a second flush would succeed without it. Until `writeAnew` has worked nothing counts as durable any more.
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

  /** What made the last flush fail; null: what was flushed is on the disk. */
  get failure(): unknown {
    return this.#failure;
  }

  /** Says that a transaction was committed. */
  committed(): void {
    this.#committed += 1;
  }

  /** Says that SQLite itself could not flush a file. */
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
   * After a failed flush, while nothing is committed: writes all of the log a second time, so that the next flush has to
   * write it to the disk, and then lets `checkpoint` take it over into the database file and begin an empty log.
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
    // What is committed while the flush runs may or may not be covered by it: it waits for the next.
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
    // The system may also have dropped what it could not write: then what is read here is what the disk has.
    if (!isWholeWal(bytes, end)) throw new LostPagesError();
    for (let at = 0; at < bytes.length; ) at += writeSync(this.#file, bytes, at, bytes.length - at, at);
    await this.#flush(this.#file);
    checkpoint();
    this.#durable = covered;
    this.#failure = null;
  }
}

/** What was committed last is neither on the disk nor in memory any more. */
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
