/** What does not look like an id names no task. PostgreSQL, for one, would not even look for a text with a NUL. */
export function looksLikeTaskId(taskId: unknown): taskId is string {
  return typeof taskId === "string" && /^[\w-]{1,100}$/.test(taskId);
}

/** Whether a name is meant as the id of a task, and not as a key. */
export function isTaskId(name: string): boolean {
  return name.startsWith("tsk_") && looksLikeTaskId(name);
}
