/** How a storage keeps track of processes: one part of the contract in storage.ts. */
import type { TaskKind } from "../model/task.ts";
import type { Held } from "./task-storage.ts";

export interface NodeStorage {
  /**
   * Makes a membership known. Its id is new with every start of the process. `slots`: left out, it runs nothing yet.
   * `abilities`: left out, it can execute everything. `version`: of Rota; left out, it is unknown.
   */
  register(params: {
    node: string;
    version?: string;
    slots?: Slots;
    perTenant?: Slots;
    abilities?: Abilities;
  }): Promise<void>;
  /** Replaces what the node can execute. From then on it is handed only tasks that it can. */
  setAbilities(params: { node: string; abilities: Abilities }): Promise<void>;
  /**
   * Says anew how much the node can run; lanes not named here it no longer runs. `perTenant`: how many slots of a lane one
   * tenant may hold there while there is a second enabled tenant; lanes not named in it have no such bound. `draining`: it
   * ends what it runs and takes nothing more; left out, that is not so.
   */
  setSlots(params: { node: string; slots: Slots; perTenant?: Slots; draining?: boolean }): Promise<void>;
  /**
   * Renews the lease of everything this membership runs. `alive: false`: it was declared dead and must abort all
   * it runs. `held` are the attempts it holds: anything else it runs has been fenced off, and what it does not run
   * although it holds it was claimed by a call whose answer got lost.
   */
  heartbeat(params: { node: string }): Promise<{ alive: boolean; held: readonly Held[] }>;
  list(): Promise<NodeRecord[]>;
  /** The same with the details that `GET /v1/nodes` shows, ordered by name. Reads every running attempt. */
  details(): Promise<NodeDetails[]>;
  /** Declares a membership dead if it has not renewed since `beat`. From then on it can end nothing. */
  markDead(params: { node: string; beat: number }): Promise<boolean>;
  /** Forgets a membership that holds nothing any more. */
  remove(params: { node: string }): Promise<void>;
}

/** What a node can execute; of stored agents with an executor, every node can execute the tasks. */
export interface Abilities {
  /**
   * The agents that its configuration and its program name, for every tenant. True: the node has an executor for that
   * agent, so that the agent is *served* and no other executor runs its tasks.
   */
  readonly agents: ReadonlyMap<string, boolean>;
  /** The kinds of tasks that it can execute for agents that are not served. */
  readonly kinds: readonly TaskKind[];
  /** The ids of the keys with which it opens stored agents that are sealed (`sealedWith` of their definition); left out: none. */
  readonly keys?: readonly string[];
}

/** For how long an agent that no live node names any more is still known, and served if it was. */
export const AGENT_MEMORY_MS = 7 * 24 * 60 * 60 * 1_000;

/** How many tasks of each lane a node runs at once. */
export type Slots = Readonly<Record<string, number>>;

export interface NodeRecord {
  readonly node: string;
  /** Grows with every renewal: compare it with an earlier look rather than with a clock. */
  readonly beat: number;
  readonly dead: boolean;
}

export interface NodeDetails {
  readonly node: string;
  /** Null: a Rota registered it that did not say. */
  readonly version: string | null;
  /** When it was registered; null likewise. */
  readonly startedAt: number | null;
  /** When it last renewed. */
  readonly seenAt: number;
  readonly dead: boolean;
  readonly draining: boolean;
  /** The lanes that the node serves or has running tasks of, ordered by name. */
  readonly lanes: readonly NodeLane[];
}

export interface NodeLane {
  readonly lane: string;
  readonly slots: number;
  /** Attempts that the node holds. */
  readonly running: number;
}
