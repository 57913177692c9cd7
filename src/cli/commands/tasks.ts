import { Command } from "commander";
import type { TaskFilter } from "../../interface/tasks.ts";
import { BULK_ACTIONS } from "../../model/bulk.ts";
import { given } from "../flags/given.ts";
import { openClient, withServerOptions } from "../flags/server-options.ts";
import { type TaskFilterFlags, toTaskFilter, withTaskFilterOptions } from "../flags/task-filter-flags.ts";
import { lineWidth } from "../terminal/print.ts";
import { type PageFlags, printPages, withPageOptions } from "../views/pages.ts";
import { tasksTable } from "../views/tasks-table.ts";
import { bulkTasksCommand } from "./tasks-bulk.ts";

interface TasksFlags extends PageFlags, TaskFilterFlags {
  readonly order?: string;
}

/** `rota tasks`: lists tasks, newest first, or acts on many of them. */
export function tasksCommand(): Command {
  const command = withTaskFilterOptions(
    new Command("tasks").description("List tasks, newest first; or cancel, retry or delete many."),
  ).option(
    "--order <order>",
    "newest, oldest, or completed: ended ones, the last to end first; --from and --to then mean the end",
  );
  const tasks = withServerOptions(withPageOptions(command)).action(listTasks);
  // The same flags belong to the list before the name of an action, and to the action after it.
  tasks.enablePositionalOptions();
  for (const action of BULK_ACTIONS) tasks.addCommand(bulkTasksCommand(action));
  return tasks;
}

async function listTasks(flags: TasksFlags): Promise<void> {
  const { tasks } = openClient(flags);
  const filter = { ...toTaskFilter(flags), ...given({ order: flags.order }) } as TaskFilter;
  await printPages(flags, {
    noun: "tasks",
    read: (position) => tasks.list({ ...filter, ...position }),
    cursor: ({ nextCursor }) => nextCursor,
    lines: (page) => tasksTable(page.tasks, { now: Date.now(), width: lineWidth() }),
  });
}
