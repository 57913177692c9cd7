/** Nodes and their leases: one part of the contract in storage.ts. */
import type { TaskKind } from "../model/task.ts";
import type { Held } from "./task-storage.ts";

/**
 * No write of these need wait for the disk. A power cut ends the processes on the same machine, and their memberships with them.
 * Other nodes renew their leases again, and declare dead nodes dead again.
 */
export interface NodeStorage {
  /**
   * Registers a node membership. Its id is new at every start of the process. `slots`: left out, it runs nothing yet.
   * `abilities`: left out, it can execute everything. `version`: of Rota; left out, it is unknown.
   */
  register(params: {
    node: string;
    version?: string;
    slots?: Slots;
    perTenant?: Slots;
    abilities?: Abilities;
  }): Promise<void>;
  /** Replaces what the node can execute. From then on its claims return only such tasks. */
  setAbilities(params: { node: string; abilities: Abilities }): Promise<void>;
  /**
   * Replaces the slots of the node; it no longer runs lanes that are not named here. `perTenant`: how many slots of a lane one
   * tenant may hold on this node while there is a second enabled tenant; lanes not named in it have no such limit. `draining`:
   * the node finishes its running tasks and claims no more; left out: false.
   */
  setSlots(params: { node: string; slots: Slots; perTenant?: Slots; draining?: boolean }): Promise<void>;
  /**
   * Renews the leases of all attempts of this membership. `alive: false`: it was declared dead and must abort all attempts.
   * `held` are the attempts that it holds. Any other attempt that the node runs has been fenced. An attempt in `held` that the
   * node does not run was claimed by a call whose response got lost.
   */
  heartbeat(params: { node: string }): Promise<{ alive: boolean; held: readonly Held[] }>;
  list(): Promise<NodeRecord[]>;
  /** The same with the details that `GET /v1/nodes` shows, ordered by name. Reads every running attempt. */
  details(): Promise<NodeDetails[]>;
  /** Declares a membership dead if it has not renewed its leases since `beat`. From then on it cannot end attempts. */
  markDead(params: { node: string; beat: number }): Promise<boolean>;
  /** Deletes a dead membership that holds no attempts. */
  remove(params: { node: string }): Promise<void>;
}

/**
 * What a node can execute, beside the tasks of stored agents with an executor: every node can execute those, if they are not
 * sealed.
 */
export interface Abilities {
  /**
   * The agents of its configuration and its program, for all tenants. True: the node has an executor for the agent. Such an
   * agent is *served*, and no other executor runs its tasks.
   */
  readonly agents: ReadonlyMap<string, boolean>;
  /** The kinds of tasks that it can execute for agents that are not served. */
  readonly kinds: readonly TaskKind[];
  /** The ids of the keys with which it opens stored agents that are sealed (`sealedWith` of their definition); left out: none. */
  readonly keys?: readonly string[];
  /** The agents of its configuration whose executor is `worker`: they are served, but by workers only. Left out: none. */
  readonly workerAgents?: readonly string[];
}

/** How long an agent that no live node names any more stays known, and served if it was. */
export const AGENT_MEMORY_MS = 7 * 24 * 60 * 60 * 1_000;

/** How many tasks of each lane a node runs at once. */
export type Slots = Readonly<Record<string, number>>;

export interface NodeRecord {
  readonly node: string;
  /** Grows with every renewal. Compare it with an earlier value, not with a clock. */
  readonly beat: number;
  readonly dead: boolean;
}

export interface NodeDetails {
  readonly node: string;
  /** Null: the node did not report its version. */
  readonly version: string | null;
  /** When it was registered; null for the same reason. */
  readonly startedAt: number | null;
  /** When it last renewed. */
  readonly seenAt: number;
  readonly dead: boolean;
  readonly draining: boolean;
  /** The lanes in which the node has slots or running tasks, ordered by name. */
  readonly lanes: readonly NodeLane[];
}

export interface NodeLane {
  readonly lane: string;
  readonly slots: number;
  /** Attempts that the node holds. */
  readonly running: number;
}
