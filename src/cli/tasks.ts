import { Command } from "commander";
import type { TaskFilter } from "../interface/tasks.ts";
import { numberFlag, pastMomentFlag } from "./flag-values.ts";
import { given } from "./given.ts";
import { type PageFlags, printPages, withPageOptions } from "./pages.ts";
import { lineWidth } from "./print.ts";
import { serialId } from "./serial-id.ts";
import { openClient, withServerOptions } from "./server-options.ts";
import { tasksTable } from "./tasks-table.ts";

interface TasksFlags extends PageFlags {
  readonly agent?: string;
  readonly state?: string;
  readonly priority?: string;
  readonly batch?: string;
  readonly session?: string;
  readonly lane?: string;
  readonly schedule?: string;
  readonly query?: string;
  readonly from?: string;
  readonly to?: string;
  readonly order?: string;
}

/** `rota tasks`: many tasks, newest first. */
export function tasksCommand(): Command {
  const command = new Command("tasks")
    .description("List tasks, newest first.")
    .option("--agent <id>", "of this agent")
    .option("--state <states>", "in one of these states, separated by commas")
    .option("--priority <priority>", "of this priority, a number or a name; critical is 0 and below")
    .option("--batch <id>", "of this batch")
    .option("--session <key>", "of this session")
    .option("--lane <name>", "in this lane")
    .option("--schedule <id>", "of this schedule")
    .option("-q, --query <text>", "with this id or its beginning, of this batch, or with this key in a batch")
    .option("--from <when>", "created then or later: a time, or a span back from now like 2h")
    .option("--to <when>", "created before that")
    .option(
      "--order <order>",
      "newest, oldest, or completed: ended ones, the last to end first; --from and --to then mean the end",
    );
  return withServerOptions(withPageOptions(command)).action(listTasks);
}

async function listTasks(flags: TasksFlags): Promise<void> {
  const { tasks } = openClient(flags);
  await printPages(flags, {
    noun: "tasks",
    read: (place) => tasks.list({ ...toFilter(flags), ...place }),
    cursor: ({ nextCursor }) => nextCursor,
    lines: (page) => tasksTable(page.tasks, { now: Date.now(), width: lineWidth() }),
  });
}

/** What is wrong with a value the server says, in its own words. */
function toFilter(flags: TasksFlags): TaskFilter {
  const { agent, state, priority, batch, session, lane, schedule, query, from, to, order } = flags;
  const now = Date.now();
  return given({
    agentId: agent,
    state,
    priority: priority === undefined ? undefined : numberFlag(priority),
    batchId: batch,
    sessionKey: session,
    lane,
    scheduleId: schedule === undefined ? undefined : serialId("schedule", schedule),
    q: query,
    from: from === undefined ? undefined : pastMomentFlag(from, now),
    to: to === undefined ? undefined : pastMomentFlag(to, now),
    order,
  }) as TaskFilter;
}
