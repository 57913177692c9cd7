/**
 * How tasks can be listed. `newest` and `oldest`: in order of acceptance. `completed`: ended tasks, the one that ended last
 * first. That order comes from the event log, so that a task whose end the log no longer has is left out.
 */
export const TASK_ORDERS = ["newest", "oldest", "completed"] as const;
export type TaskOrder = (typeof TASK_ORDERS)[number];
