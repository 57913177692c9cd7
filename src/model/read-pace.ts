/** What one read of a log from the storage took. */
export interface ReadWork {
  /** Entries that were looked at, whether or not they were asked for. */
  readonly looked: number;
  /** Those that were asked for. */
  readonly entries: readonly { readonly bytes: number }[];
}

/** Carries out a read when there is time for it, and learns what it took. Rejects when the reader has gone meanwhile. */
export type ReadPace = <Work extends ReadWork>(read: () => Promise<Work>) => Promise<Work>;
