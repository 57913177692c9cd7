import type { NodeState } from "../model/node.ts";

export type { NodeState };

/** The processes that run tasks. Over HTTP, for the role `admin`. */
export interface Nodes {
  /**
   * Lists nodes, ordered by id. A node whose scheduler is disabled is not listed.
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
  /** Changes at each start, and when a node comes back after it was lost. */
  readonly id: string;
  /** The version of Rota; null: an old version that does not report it. */
  readonly version: string | null;
  /** When the node joined under this id, RFC 3339; null likewise. */
  readonly startedAt: string | null;
  /** When it last renewed its lease, RFC 3339. */
  readonly lastSeenAt: string;
  /** The lanes that the node serves or has running tasks of, ordered by name. */
  readonly lanes: readonly NodeLaneInfo[];
  readonly state: NodeState;
}

export interface NodeLaneInfo {
  readonly name: string;
  /** How many tasks of the lane the node can run at once. */
  readonly slots: number;
  readonly running: number;
}
