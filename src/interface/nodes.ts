import type { NodeState } from "../model/node-state.ts";

export type { NodeState };

/** The processes that run tasks. For admins. */
export interface Nodes {
  /**
   * By id. A node whose scheduler is disabled runs nothing and is not listed.
   *
   * @example
   * const { nodes } = await rota.nodes.list();
   */
  list(): Promise<NodeList>;
}

export interface NodeList {
  readonly nodes: readonly NodeInfo[];
}

export interface NodeInfo {
  /** New at each start, and when a node comes back after it was lost. */
  readonly id: string;
  /** Of Rota; null: a version that did not say. */
  readonly version: string | null;
  /** When it joined under this id, RFC 3339; null likewise. */
  readonly startedAt: string | null;
  /** When it last renewed its lease, RFC 3339. */
  readonly lastSeenAt: string;
  /** Those that it can run, or runs something of, by name. */
  readonly lanes: readonly NodeLaneInfo[];
  readonly state: NodeState;
}

export interface NodeLaneInfo {
  readonly name: string;
  /** How many of its tasks the node runs at once. */
  readonly slots: number;
  readonly running: number;
}
