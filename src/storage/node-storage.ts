/** How a storage keeps track of processes: one part of the contract in storage.ts. */
import type { Held } from "./task-storage.ts";

export interface NodeStorage {
  /** Makes an incarnation known. Its id is new with every start of the process. `slots`: left out, it runs nothing yet. */
  register(params: { node: string; slots?: Slots }): Promise<void>;
  /** Says anew how much the node can run; lanes not named here it no longer runs. */
  setSlots(params: { node: string; slots: Slots }): Promise<void>;
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

/** How many tasks of each lane a node runs at once. */
export type Slots = Readonly<Record<string, number>>;

export interface NodeRecord {
  readonly node: string;
  /** Grows with every renewal: compare it with an earlier look rather than with a clock. */
  readonly beat: number;
  readonly dead: boolean;
}
