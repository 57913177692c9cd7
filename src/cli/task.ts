import { Command } from "commander";
import { print, printJson } from "./print.ts";
import { openClient, type ServerFlags, withServerOptions } from "./server-options.ts";
import { taskSheet } from "./task-sheet.ts";

/** `rota task ID`: everything there is to know of one task. */
export function taskCommand(): Command {
  const command = new Command("task")
    .description("Show one task: what it asks for, what became of it, and every attempt.")
    .argument("<id>", "the task's id: tsk_…");
  return withServerOptions(command).action(async (id: string, flags: ServerFlags) => {
    const task = await openClient(flags).tasks.get(id);
    if (flags.json) printJson(task);
    else for (const line of taskSheet(task, Date.now())) print(line);
  });
}
