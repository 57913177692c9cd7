/** How long after a renewal other nodes leave a node's tasks alone. */
export const LEASE_MS = 15_000;

/**
 * `alive`: it claims and runs tasks. `draining`: it ends its running tasks and claims no more. `lost`: it has not renewed its
 * lease (15 s), or was declared dead. Other nodes take its tasks back, and then it leaves the list.
 */
export const NODE_STATES = ["alive", "draining", "lost"] as const;
export type NodeState = (typeof NODE_STATES)[number];

interface NodeSigns {
  /** It was declared dead. */
  readonly dead: boolean;
  readonly draining: boolean;
  /** Whether it has renewed its lease in time. */
  readonly isRenewed: boolean;
}

export function nodeState({ dead, draining, isRenewed }: NodeSigns): NodeState {
  if (dead || !isRenewed) return "lost";
  return draining ? "draining" : "alive";
}
