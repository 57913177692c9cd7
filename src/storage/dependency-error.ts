import type { TerminalState } from "../model/task-state.ts";

/** What the `error` of a task says that was cancelled because something it depends on was not done. */
export function dependencyError(cause: string, state: Exclude<TerminalState, "done">): string {
  return `dependency ${cause} ${state}`;
}
