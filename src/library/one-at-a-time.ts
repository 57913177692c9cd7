/** Runs work one after the other, in order. A failure does not hold up the work behind it. */
export class OneAtATime {
  #last: Promise<unknown> = Promise.resolve();

  run<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#last.then(work);
    this.#last = done.catch(() => {});
    return done;
  }

  /** Resolves once all work passed so far is done. */
  async idle(): Promise<void> {
    await this.#last;
  }
}
