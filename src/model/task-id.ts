/** Whether a value has the form of an id. Other texts are not looked up: PostgreSQL, for one, refuses a text with NUL. */
export function looksLikeTaskId(taskId: unknown): taskId is string {
  return typeof taskId === "string" && /^[\w-]{1,100}$/.test(taskId);
}

/** Whether a name in `dependsOn` is the id of a task, and not a key. */
export function isTaskId(name: string): boolean {
  return name.startsWith("tsk_") && looksLikeTaskId(name);
}
