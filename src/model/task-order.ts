/**
 * How tasks can be listed. `newest` and `oldest`: in order of acceptance. `completed`: tasks that have ended, the one that ended
 * last first; the log tells, so that a task is left out whose end the log no longer has.
 */
export const TASK_ORDERS = ["newest", "oldest", "completed"] as const;
export type TaskOrder = (typeof TASK_ORDERS)[number];
