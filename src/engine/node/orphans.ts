import type { Held } from "../../storage/storage.ts";

export interface OrphanCheck {
  /** What the storage says this node runs. */
  readonly held: readonly Held[];
  /** Whether this node runs the attempt, or is about to write down its end. */
  readonly knows: (token: number) => boolean;
  /** How many exchanges with the storage have begun, and how many of them have ended. */
  readonly exchanges: { readonly begun: number; readonly ended: number };
}

/**
 * Finds attempts that the storage handed to this node in an answer that got lost: nobody runs them, and while the
 * node lives nobody would rescue them either. One is sure only when it is seen a second time, and every exchange that
 * could still have brought it, or be writing down its end, is over.
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
