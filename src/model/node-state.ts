/**
 * `alive`: it claims and runs tasks. `draining`: it ends its running tasks and claims no more. `lost`: it has not renewed its
 * lease (15 s), or was declared dead. Other nodes take its tasks back, and then it leaves the list.
 */
export const NODE_STATES = ["alive", "draining", "lost"] as const;
export type NodeState = (typeof NODE_STATES)[number];
