import { Command } from "commander";
import { TASK_LOG_MAX } from "../../model/task-log.ts";
import { numberFlag } from "../flags/flag-values.ts";
import { openClient, type ServerFlags, withServerOptions } from "../flags/server-options.ts";
import { oneLine } from "../terminal/display-text.ts";
import { print, printJson, printNotice } from "../terminal/print.ts";
import { explanationSheet } from "../views/explanation-sheet.ts";
import { taskSheet } from "../views/task-sheet.ts";

interface TaskFlags extends ServerFlags {
  readonly why?: boolean;
  readonly logs?: boolean;
  readonly attempt?: string;
}

/** `rota task ID`: all fields of one task. */
export function taskCommand(): Command {
  const command = new Command("task")
    .description("Show one task: its input, its result, and every attempt.")
    .argument("<id>", "the task's id: tsk_…")
    .option("--why", "explain why it waits: what holds it, since when, and the tasks ahead of it")
    .option("--logs", "show the log lines of the newest attempt that has any")
    .option("--attempt <number>", "with --logs: the number of the attempt");
  return withServerOptions(command).action(async (id: string, flags: TaskFlags) => {
    if (flags.why) return explain(id, flags);
    if (flags.logs) return showLog(id, flags);
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

/** The stored log of one attempt. */
async function showLog(id: string, flags: TaskFlags): Promise<void> {
  const { tasks } = openClient(flags);
  const attempt = flags.attempt === undefined ? {} : { attempt: numberFlag(flags.attempt) as number };
  const log = await tasks.logs(id, { ...attempt, limit: TASK_LOG_MAX.lines });
  if (flags.json) return printJson(log);
  if (log.attempt === null) return printNotice("The task has no log lines.");
  if (log.dropped > 0) printNotice(`${log.dropped} older lines are no longer stored.`);
  for (const { at, level, text } of log.lines) print(`${at}  ${level.padEnd(5)}  ${oneLine(text)}`);
}
