/**
 * Reads something that other nodes change, for any number of callers. Each caller gets a read that began after its call.
 * Callers that ask while a read is under way share the next one.
 */
export class FreshRead {
  readonly #read: () => Promise<void>;
  #reading: Promise<void> | null = null;
  #next: Promise<void> | null = null;

  constructor(read: () => Promise<void>) {
    this.#read = read;
  }

  /** Resolves once everything is read that was stored before this call. */
  now(): Promise<void> {
    // The read under way may have begun too early.
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
