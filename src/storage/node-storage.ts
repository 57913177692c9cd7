/** How a storage keeps track of processes: one part of the contract in storage.ts. */
import type { Held } from "./task-storage.ts";

export interface NodeStorage {
  /** Makes an incarnation known. Its id is new with every start of the process. */
  register(params: { node: string }): Promise<void>;
  /**
   * Renews the lease of everything this incarnation runs. `alive: false`: it was declared dead and must abort all
   * it runs. `held` are the attempts it holds: anything else it runs has been fenced off, and what it does not run
   * although it holds it was claimed by a call whose answer got lost.
   */
  heartbeat(params: { node: string }): Promise<{ alive: boolean; held: readonly Held[] }>;
  list(): Promise<NodeRecord[]>;
  /** Declares an incarnation dead if it has not renewed since `beat`. From then on it can end nothing. */
  markDead(params: { node: string; beat: number }): Promise<boolean>;
  /** Forgets an incarnation that holds nothing any more. */
  remove(params: { node: string }): Promise<void>;
}

export interface NodeRecord {
  readonly node: string;
  /** Grows with every renewal: compare it with an earlier look rather than with a clock. */
  readonly beat: number;
  readonly dead: boolean;
}
