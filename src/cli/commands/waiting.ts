import { Command } from "commander";
import { openClient, type ServerFlags, withServerOptions } from "../flags/server-options.ts";
import { lineWidth, print, printJson } from "../terminal/print.ts";
import { waitingTable } from "../views/waiting-table.ts";

/** `rota waiting`: shows why tasks wait. */
export function waitingCommand(): Command {
  const command = new Command("waiting").description(
    "Show why tasks wait: each reason with the number of tasks that it holds.",
  );
  return withServerOptions(command).action(async (flags: ServerFlags) => {
    const waiting = await openClient(flags).waiting();
    if (flags.json) return printJson(waiting);
    if (waiting.total === 0) return print("No tasks are waiting.");
    for (const line of waitingTable(waiting.reasons, { width: lineWidth() })) print(line);
    print(`${waiting.total} in all`);
  });
}
