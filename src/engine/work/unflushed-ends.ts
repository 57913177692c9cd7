/**
 * Exchanges whose ends are not yet stored for good. Each keeps a connection until its flush: the others are for reads and
 * inserts while the disk is slow.
 */
const EXCHANGES_MAX = 3;

/** The exchanges whose ends are committed, but not on disk yet: a crash of the database may still lose them. */
export class UnflushedEnds {
  /** The tokens of the ends, by the flush of their exchange. */
  readonly #tokens = new Map<Promise<void>, ReadonlySet<number>>();
  #lost = 0;

  get size(): number {
    return this.#tokens.size;
  }

  /** Whether an end of this attempt may still be lost. */
  has(token: number): boolean {
    return [...this.#tokens.values()].some((tokens) => tokens.has(token));
  }

  /** `durable` resolves once the ends are on disk, and rejects if they may be lost. */
  add(
    tokens: readonly number[],
    durable: Promise<void>,
    { onFlushed, onLost }: { readonly onFlushed: () => void; readonly onLost: () => void },
  ): void {
    const flush = durable
      .then(onFlushed, () => {
        this.#lost += 1;
        onLost();
      })
      .finally(() => this.#tokens.delete(flush));
    this.#tokens.set(flush, new Set(tokens));
  }

  /** Resolves once there is room for another exchange. */
  async room(): Promise<void> {
    if (this.#tokens.size >= EXCHANGES_MAX) await Promise.race(this.#tokens.keys());
  }

  /** Calls `write`, and resolves once all ends are flushed. Returns whether none has been lost meanwhile. */
  async areKept(write: () => Promise<unknown>): Promise<boolean> {
    const lost = this.#lost;
    await write();
    await Promise.all(this.#tokens.keys());
    return this.#lost === lost;
  }
}
