/** Does what it is given one after the other, in order. What fails holds up nothing behind it. */
export class OneAtATime {
  #last: Promise<unknown> = Promise.resolve();

  run<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#last.then(work);
    this.#last = done.catch(() => {});
    return done;
  }

  /** Resolves once everything given so far is done. */
  async idle(): Promise<void> {
    await this.#last;
  }
}
