/** The longest pause: a turn may have lasted long because the storage was unavailable, or because of other work. */
const REST_MS_MAX = 25;

/** How much is done in one turn of the event loop: some milliseconds of it. */
export interface TurnBudgetOptions {
  readonly pieces: number;
  readonly bytes: number;
  /** The pause after a turn that was used up, as a multiple of its duration. Left out: none. */
  readonly rest?: number;
}

/**
 * Shares the event loop between one kind of work and everything else. Work that never waits for I/O, such as sending events to
 * fast readers, would otherwise run in one turn of the loop until all is done and block other requests. Owners take turns, so that
 * a thousand pieces of work of one owner do not delay the work of another.
 *
 * @example
 * if (turns.isOver) await turns.next(owner);
 * const frame = makeFrame();
 * turns.used(frame.length);
 */
export class TurnBudget<Owner> {
  readonly #options: TurnBudgetOptions;
  #pieces = 0;
  #bytes = 0;
  #begunAt = 0;
  #isScheduled = false;
  /** Pieces of work that have begun and not ended. */
  #underWay = 0;
  /** Waiting pieces of work by owner; the first owner is next. */
  readonly #waiting = new Map<Owner, (() => void)[]>();

  constructor(options: TurnBudgetOptions) {
    this.#options = options;
  }

  /** Whether to wait for `next` before anything else is done. */
  get isOver(): boolean {
    return this.#isUsedUp || this.#waiting.size > 0;
  }

  /** Resolves when it is the turn of a piece of work. The caller must report its size with `used` right after it. */
  next(owner: Owner): Promise<void> {
    this.#schedule();
    return new Promise((resolve) => {
      const own = this.#waiting.get(owner);
      if (own === undefined) this.#waiting.set(owner, [resolve]);
      else own.push(resolve);
    });
  }

  /** A piece of work was done. */
  used(bytes: number): void {
    if (this.#pieces === 0) this.#begunAt = performance.now();
    this.#pieces += 1;
    this.#bytes += bytes;
    this.#schedule();
    if (!this.#isUsedUp) this.#letOneThrough();
  }

  /** Does an asynchronous piece of work. The turn lasts until it has ended. */
  async during<Result>(owner: Owner, bytes: number, work: () => Promise<Result>): Promise<Result> {
    if (this.isOver) await this.next(owner);
    this.#underWay += 1;
    try {
      const working = work();
      this.used(bytes);
      return await working;
    } finally {
      this.#underWay -= 1;
      this.#schedule();
    }
  }

  get #isUsedUp(): boolean {
    const { pieces, bytes } = this.#options;
    return this.#pieces >= pieces || this.#bytes >= bytes;
  }

  /** Yields to other work between two turns. */
  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => {
      if (this.#underWay > 0) {
        this.#isScheduled = false;
        return;
      }
      const { rest = 0 } = this.#options;
      const turnMs = performance.now() - this.#begunAt;
      const restMs = this.#isUsedUp ? Math.min(rest * turnMs, REST_MS_MAX) : 0;
      if (restMs < 1) this.#beginTurn();
      else setTimeout(() => this.#beginTurn(), restMs);
    });
  }

  #beginTurn(): void {
    this.#isScheduled = false;
    this.#pieces = 0;
    this.#bytes = 0;
    if (this.#waiting.size > 0) this.#schedule();
    this.#letOneThrough();
  }

  /** The next piece of work starts after this one has called `used`. */
  #letOneThrough(): void {
    for (const [owner, own] of this.#waiting) {
      const go = own.shift();
      this.#waiting.delete(owner);
      if (own.length > 0) this.#waiting.set(owner, own);
      go?.();
      return;
    }
  }
}
