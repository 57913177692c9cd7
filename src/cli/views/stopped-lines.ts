import type { StoppedTasks } from "../../client/index.ts";
import type { ServerFlags } from "../flags/server-options.ts";
import { print, printJson, printNotice } from "../terminal/print.ts";

/** Prints the tasks that were ended, one per line. */
export function printStopped({ stopped, cancelled }: StoppedTasks, { json }: ServerFlags): void {
  if (json) {
    printJson({ stopped, cancelled });
    return;
  }
  for (const taskId of stopped) print(`${taskId} stopped`);
  for (const taskId of cancelled) print(`${taskId} cancelled`);
  if (stopped.length + cancelled.length === 0) printNotice("No task to stop.");
}
