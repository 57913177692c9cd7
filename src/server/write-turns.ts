/** What all streams together write before other work has its turn: some milliseconds. */
export const FRAMES_PER_TURN = 100;
export const BYTES_PER_TURN = 524_288;

/**
 * Shares the event loop between streams and everything else. As long as readers take what they are sent, a stream never has to
 * wait for anything: thousands of events would go out in one turn of the loop, and nobody else would be answered meanwhile.
 * Streams that wait take turns, key by key, so that a thousand of one key do not hold up the one of another.
 *
 * @example
 * if (turns.isOver) await turns.next(key);
 * turns.wrote(frame.length);
 */
export class WriteTurns {
  #frames = 0;
  #bytes = 0;
  #isScheduled = false;
  /** Those who wait, by key, the key first that is next. */
  readonly #waiting = new Map<string | null, (() => void)[]>();

  /** Whether to wait for `next` before anything else is written. */
  get isOver(): boolean {
    return this.#isFull || this.#waiting.size > 0;
  }

  /** Resolves when there is room for a frame. The caller reports it with `wrote`, at once, whether or not there was one. */
  next(key: string | null): Promise<void> {
    this.#schedule();
    return new Promise((resolve) => {
      const own = this.#waiting.get(key);
      if (own === undefined) this.#waiting.set(key, [resolve]);
      else own.push(resolve);
    });
  }

  wrote(bytes: number): void {
    this.#frames += 1;
    this.#bytes += bytes;
    this.#schedule();
    if (!this.#isFull) this.#letOneThrough();
  }

  get #isFull(): boolean {
    return this.#frames >= FRAMES_PER_TURN || this.#bytes >= BYTES_PER_TURN;
  }

  /** Other work comes between two turns. */
  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#frames = 0;
      this.#bytes = 0;
      if (this.#waiting.size > 0) this.#schedule();
      this.#letOneThrough();
    });
  }

  /** The next one goes once this one has reported what it wrote. */
  #letOneThrough(): void {
    for (const [key, own] of this.#waiting) {
      const go = own.shift();
      this.#waiting.delete(key);
      if (own.length > 0) this.#waiting.set(key, own);
      go?.();
      return;
    }
  }
}
