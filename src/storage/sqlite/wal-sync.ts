import { closeSync, fdatasync, openSync } from "node:fs";

/**
 * Makes commits durable without holding up the thread that makes them. SQLite runs with `synchronous = NORMAL`, so a
 * commit only appends to the write-ahead log; this flushes that file from libuv's pool. One flush covers every
 * commit before it, so callers that wait together share one.
 */
export class WalSync {
  readonly #file: number;
  readonly #flush: FlushFile;
  #committed = 0;
  #durable = 0;
  #running: Promise<void> | null = null;

  /** `flush` is replaced by tests that simulate a power cut. */
  constructor(walPath: string, flush: FlushFile = flushFile) {
    this.#file = openSync(walPath, "r+");
    this.#flush = flush;
  }

  /** Says that a transaction was committed. */
  committed(): void {
    this.#committed += 1;
  }

  /** Resolves once everything committed before this call is on the disk. */
  async durable(): Promise<void> {
    const target = this.#committed;
    while (this.#durable < target) {
      this.#running ??= this.#flushOnce();
      await this.#running;
    }
  }

  async close(): Promise<void> {
    await this.#running?.catch(() => undefined);
    closeSync(this.#file);
  }

  async #flushOnce(): Promise<void> {
    // What is committed while the flush runs may or may not be covered by it: it waits for the next.
    const covered = this.#committed;
    try {
      await this.#flush(this.#file);
      this.#durable = covered;
    } finally {
      this.#running = null;
    }
  }
}

export type FlushFile = (file: number) => Promise<void>;

function flushFile(file: number): Promise<void> {
  return new Promise((resolve, reject) => {
    fdatasync(file, (error) => (error ? reject(error) : resolve()));
  });
}
