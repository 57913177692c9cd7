import { Command } from "commander";
import type { ScheduleStatus } from "../client/index.ts";
import { lineWidth, note, print, printJson } from "./print.ts";
import { schedulesTable } from "./schedules-table.ts";
import { openClient, type ServerFlags, withServerOptions } from "./server-options.ts";

interface ListFlags extends ServerFlags {
  readonly status?: string;
}

/** `rota schedules list`, which may be left out. */
export function listCommand(): Command {
  const command = new Command("list")
    .description("List schedules, the one that was changed last first, 200 at most.")
    .option("--status <status>", "active, paused, completed or failed");
  return withServerOptions(command).action(async (flags: ListFlags) => {
    const { status } = flags;
    // What is wrong with a value the server says, in its own words.
    const filter = status === undefined ? {} : { status: status as ScheduleStatus };
    const list = await openClient(flags).schedules.list(filter);
    if (flags.json) return printJson(list);
    if (list.count === 0) return note(nothing(status));
    for (const line of schedulesTable(list.schedules, { now: Date.now(), width: lineWidth() })) print(line);
  });
}

function nothing(status: string | undefined): string {
  if (status !== undefined) return "There are no such schedules.";
  return 'There are no schedules. Make one: rota schedule "in 30 minutes: look again"';
}
