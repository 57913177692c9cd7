import type { Held } from "../../storage/storage.ts";

export interface OrphanCheck {
  /** The attempts that this node runs according to the storage. */
  readonly held: readonly Held[];
  /** Whether this node runs the attempt, or is about to write its end. */
  readonly knows: (token: number) => boolean;
  /** How many exchanges with the storage have begun, and how many of them have ended. */
  readonly exchanges: { readonly begun: number; readonly ended: number };
}

/**
 * Finds attempts that this node claimed in a response that was lost. No process runs them, and while this node is alive no
 * other node rescues them. An attempt counts as lost only when it is seen a second time, and every exchange is over that could
 * still return it or write its end.
 */
export class Orphans {
  /** By token: how many exchanges had begun when it was first seen. */
  #suspects = new Map<number, number>();

  check({ held, knows, exchanges }: OrphanCheck): Held[] {
    const unknown = held.filter(({ token }) => !knows(token));
    const sure = unknown.filter(({ token }) => {
      const begunBefore = this.#suspects.get(token);
      return begunBefore !== undefined && exchanges.ended >= begunBefore;
    });
    this.#suspects = new Map(
      unknown.map(({ token }) => [token, this.#suspects.get(token) ?? exchanges.begun]),
    );
    return sure;
  }
}
