import type { ClaimedTask } from "../../storage/storage.ts";

/** A task that this node has claimed and not begun. */
export interface AheadTask extends ClaimedTask {
  /** When it was claimed, by the monotonic clock. */
  readonly heldAt: number;
}

/** The tasks that this node holds ahead of free slots, first in first out in each lane. */
export class AheadQueue {
  readonly #tasks = new Map<number, AheadTask>();
  readonly #lanes = new Map<string, Set<number>>();

  get size(): number {
    return this.#tasks.size;
  }

  sizeOf(lane: string): number {
    return this.#lanes.get(lane)?.size ?? 0;
  }

  get lanes(): string[] {
    return [...this.#lanes.keys()];
  }

  has(token: number): boolean {
    return this.#tasks.has(token);
  }

  tokens(): number[] {
    return [...this.#tasks.keys()];
  }

  add(claimed: ClaimedTask, heldAt: number): void {
    this.#tasks.set(claimed.token, { ...claimed, heldAt });
    const { lane } = claimed.task;
    const tokens = this.#lanes.get(lane) ?? new Set<number>();
    this.#lanes.set(lane, tokens.add(claimed.token));
  }

  /** Removes and returns the first task of a lane. */
  shift(lane: string): AheadTask | undefined {
    for (const token of this.#lanes.get(lane) ?? []) return this.remove(token);
    return undefined;
  }

  remove(token: number): AheadTask | undefined {
    const found = this.#tasks.get(token);
    if (found === undefined) return undefined;
    this.#tasks.delete(token);
    const { lane } = found.task;
    const tokens = this.#lanes.get(lane);
    tokens?.delete(token);
    if (tokens?.size === 0) this.#lanes.delete(lane);
    return found;
  }

  /** The tasks that were claimed at this time or before. */
  heldSince(at: number): AheadTask[] {
    const found: AheadTask[] = [];
    for (const task of this.#tasks.values()) {
      // In the order of their claims.
      if (task.heldAt > at) break;
      found.push(task);
    }
    return found;
  }

  /** When the oldest of them was claimed; Infinity: there is none. */
  get oldestAt(): number {
    for (const { heldAt } of this.#tasks.values()) return heldAt;
    return Number.POSITIVE_INFINITY;
  }
}
