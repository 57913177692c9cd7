/**
 * Reads something that others change, for any number of callers: whoever asks is answered by a read that began after they
 * did, and those who ask while one is waited for share the next.
 */
export class FreshRead {
  readonly #read: () => Promise<void>;
  #reading: Promise<void> | null = null;
  #next: Promise<void> | null = null;

  constructor(read: () => Promise<void>) {
    this.#read = read;
  }

  /** Resolves once everything is known that was stored before this was called. */
  now(): Promise<void> {
    // The one under way may have begun too early.
    this.#next ??= (this.#reading ?? Promise.resolve())
      .catch(() => {})
      .then(() => {
        this.#reading = this.#next;
        this.#next = null;
        return this.#read();
      });
    return this.#next;
  }
}
