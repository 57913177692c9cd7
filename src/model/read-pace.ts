/** The cost of one read of a log from the storage. */
export interface ReadWork {
  /** Entries read, including those that do not match. */
  readonly looked: number;
  /** Entries that match. */
  readonly entries: readonly { readonly bytes: number }[];
}

/** Runs a read when it is its turn, and records its cost. Rejects if the reader has disconnected. */
export type ReadPace = <Work extends ReadWork>(read: () => Promise<Work>) => Promise<Work>;
