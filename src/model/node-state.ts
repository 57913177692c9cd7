/**
 * `alive`: it takes tasks and runs them. `draining`: it ends what it runs and takes nothing more. `lost`: it has not renewed for a
 * whole lease (15 s), or was declared dead; other nodes take its tasks back, and then it leaves the list.
 */
export const NODE_STATES = ["alive", "draining", "lost"] as const;
export type NodeState = (typeof NODE_STATES)[number];
