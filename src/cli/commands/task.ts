import { Command } from "commander";
import { RotaError } from "../../model/errors.ts";
import type { Task } from "../../model/task.ts";
import { TASK_LOG_MAX } from "../../model/task-log.ts";
import { numberFlag } from "../flags/flag-values.ts";
import { openClient, type ServerFlags, withServerOptions } from "../flags/server-options.ts";
import { oneLine } from "../terminal/display-text.ts";
import { lineWidth, print, printJson, printNotice } from "../terminal/print.ts";
import { explanationSheet } from "../views/explanation-sheet.ts";
import { taskSheet } from "../views/task-sheet.ts";
import { taskTree } from "../views/task-tree.ts";

interface TaskFlags extends ServerFlags {
  readonly why?: boolean;
  readonly tree?: boolean;
  readonly logs?: boolean;
  readonly attempt?: string;
}

/** `rota task ID`: all fields of one task. */
export function taskCommand(): Command {
  const command = new Command("task")
    .description("Show one task: its input, its result, and every attempt.")
    .argument("<id>", "the task's id: tsk_…")
    .option("--why", "explain why it waits: what holds it, since when, and the tasks ahead of it")
    .option("--tree", "show the tree of tasks that it is part of: which task submitted which")
    .option("--logs", "show the log lines of the newest attempt that has any")
    .option("--attempt <number>", "with --logs: the number of the attempt");
  return withServerOptions(command).action(async (id: string, flags: TaskFlags) => {
    if (flags.why) return explain(id, flags);
    if (flags.logs) return showLog(id, flags);
    if (flags.tree) return showTree(id, flags);
    const task = await openClient(flags).tasks.get(id);
    if (flags.json) printJson(task);
    else for (const line of taskSheet(task, Date.now())) print(line);
  });
}

/** How many tasks of a tree are shown. */
const TREE_MAX = 1_000;

/** The tree of a task, from its root on. */
async function showTree(id: string, flags: ServerFlags): Promise<void> {
  const { tasks } = openClient(flags);
  const task = await tasks.get(id);
  const root = task.rootTaskId === undefined ? task : await tasks.get(task.rootTaskId).catch(orGone);
  const rootTaskId = task.rootTaskId ?? task.taskId;
  const below: Task[] = [];
  let cursor: string | null | undefined;
  while (cursor !== null && below.length < TREE_MAX) {
    const page = await tasks.list({
      ...{ rootTaskId, order: "oldest", limit: TREE_MAX },
      ...(cursor === undefined ? {} : { cursor }),
    });
    below.push(...page.tasks);
    cursor = page.nextCursor;
  }
  const all = [...(root === null ? [] : [root]), ...below.slice(0, TREE_MAX)];
  if (flags.json) return printJson({ tasks: all });
  for (const line of taskTree(all, {
    rootTaskId,
    marked: id,
    width: lineWidth() ?? Number.POSITIVE_INFINITY,
  }))
    print(line);
  if (cursor !== null || below.length > TREE_MAX) printNotice(`Only the first ${TREE_MAX} tasks are shown.`);
}

/** The root may have been deleted for its age, or belong to another agent. */
function orGone(error: unknown): null {
  if (error instanceof RotaError && error.code === "not_found") return null;
  throw error;
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
