import { Command } from "commander";
import { explanationSheet } from "./explanation-sheet.ts";
import { print, printJson } from "./print.ts";
import { openClient, type ServerFlags, withServerOptions } from "./server-options.ts";
import { taskSheet } from "./task-sheet.ts";

interface TaskFlags extends ServerFlags {
  readonly why?: boolean;
}

/** `rota task ID`: everything there is to know of one task. */
export function taskCommand(): Command {
  const command = new Command("task")
    .description("Show one task: what it asks for, what became of it, and every attempt.")
    .argument("<id>", "the task's id: tsk_…")
    .option("--why", "say what holds it, who is ahead, and since when");
  return withServerOptions(command).action(async (id: string, flags: TaskFlags) => {
    if (flags.why) return explain(id, flags);
    const task = await openClient(flags).tasks.get(id);
    if (flags.json) printJson(task);
    else for (const line of taskSheet(task, Date.now())) print(line);
  });
}

async function explain(id: string, flags: ServerFlags): Promise<void> {
  const explanation = await openClient(flags).tasks.explain(id);
  if (flags.json) printJson(explanation);
  else for (const line of explanationSheet(explanation, Date.now())) print(line);
}
