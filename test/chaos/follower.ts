import { RotaClient } from "../../src/client/index.ts";
import type { Followed } from "./history.ts";
import type { Tenancy } from "./tenancy.ts";

export interface Follower extends Followed {
  /** Resolves once it has received this event, and ends. */
  until(seq: number): Promise<void>;
  /** Why it ended before it was stopped; null: it continues. */
  readonly failure: unknown;
}

/** Reads the events that a tenant sees on one node from the first on, over whatever happens to the node. */
export function follow(url: string, { id: tenantId, key }: Pick<Tenancy, "id" | "key">): Follower {
  const seqs: number[] = [];
  const abort = new AbortController();
  let failure: unknown = null;
  let arrived: () => void = () => {};
  const reading = (async () => {
    for await (const { seq } of new RotaClient({ url, key }).events({ after: 0, signal: abort.signal })) {
      seqs.push(seq);
      arrived();
    }
  })().catch((error) => {
    failure = error;
    arrived();
  });
  return {
    tenantId,
    seqs,
    get failure() {
      return failure;
    },
    async until(seq) {
      while ((seqs.at(-1) ?? 0) < seq && failure === null)
        await new Promise<void>((resolve) => {
          arrived = resolve;
        });
      abort.abort();
      await reading;
      if (failure !== null) throw failure;
    },
  };
}
