import { RotaClient } from "../../src/client/index.ts";

export interface Follower {
  /** The numbers of the events it was handed. */
  readonly seqs: readonly number[];
  /** Resolves once it has been handed this one, and ends. */
  until(seq: number): Promise<void>;
  /** Why it ended before it was told to; null: it goes on. */
  readonly failure: unknown;
}

/** Reads the events of one node from the first on, over whatever happens to the node. */
export function follow(url: string): Follower {
  const seqs: number[] = [];
  const abort = new AbortController();
  let failure: unknown = null;
  let heard: () => void = () => {};
  const reading = (async () => {
    for await (const { seq } of new RotaClient({ url }).events({ after: 0, signal: abort.signal })) {
      seqs.push(seq);
      heard();
    }
  })().catch((error) => {
    failure = error;
    heard();
  });
  return {
    seqs,
    get failure() {
      return failure;
    },
    async until(seq) {
      while ((seqs.at(-1) ?? 0) < seq && failure === null)
        await new Promise<void>((resolve) => {
          heard = resolve;
        });
      abort.abort();
      await reading;
      if (failure !== null) throw failure;
    },
  };
}
