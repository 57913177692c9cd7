import { Command } from "commander";
import type { WaitingReason } from "../../client/index.ts";
import { openClient, type ServerFlags, withServerOptions } from "../flags/server-options.ts";
import { oneLine } from "../terminal/display-text.ts";
import { lineWidth, print, printJson } from "../terminal/print.ts";
import { tableLines } from "../views/table.ts";

/** `rota waiting`: shows why tasks wait. */
export function waitingCommand(): Command {
  const command = new Command("waiting").description(
    "Show why tasks wait: each reason with the number of tasks that it holds.",
  );
  return withServerOptions(command).action(async (flags: ServerFlags) => {
    const waiting = await openClient(flags).waiting();
    if (flags.json) return printJson(waiting);
    if (waiting.total === 0) return print("No task waits.");
    for (const line of reasonsTable(waiting.reasons)) print(line);
    print(`${waiting.total} in all`);
  });
}

function reasonsTable(reasons: readonly WaitingReason[]): string[] {
  return tableLines(
    [
      { title: "TASKS", align: "right" },
      { title: "REASON" },
      { title: "LANE", shrinksTo: 8 },
      { title: "AGENT", shrinksTo: 8 },
    ],
    reasons.map(({ code, lane = "", agentId = "", count }) => [
      String(count),
      code,
      oneLine(lane),
      oneLine(agentId),
    ]),
    { width: lineWidth() },
  );
}
