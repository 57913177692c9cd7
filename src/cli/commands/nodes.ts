import { Command } from "commander";
import type { NodeInfo } from "../../client/index.ts";
import { openClient, type ServerFlags, withServerOptions } from "../flags/server-options.ts";
import { oneLine } from "../terminal/display-text.ts";
import { lineWidth, print, printJson } from "../terminal/print.ts";
import { tableLines } from "../views/table.ts";
import { shownAgo } from "../views/times.ts";

/** `rota nodes`: the processes that run tasks. */
export function nodesCommand(): Command {
  const command = new Command("nodes").description(
    "List the processes that run tasks, with their slots and running tasks.",
  );
  return withServerOptions(command).action(async (flags: ServerFlags) => {
    const list = await openClient(flags).nodes.list();
    if (flags.json) return printJson(list);
    if (list.nodes.length === 0) return print("No node is running tasks.");
    for (const line of nodesTable(list.nodes, Date.now())) print(line);
  });
}

function nodesTable(nodes: readonly NodeInfo[], now: number): string[] {
  return tableLines(
    [
      { title: "NODE", shrinksTo: 12 },
      { title: "STATE" },
      { title: "VERSION" },
      { title: "STARTED" },
      { title: "SEEN" },
      { title: "RUNNING/SLOTS", shrinksTo: 12 },
    ],
    nodes.map(({ id, state, version, startedAt, lastSeenAt, lanes }) => [
      oneLine(id),
      state,
      version ?? "–",
      startedAt === null ? "–" : shownAgo(startedAt, now),
      shownAgo(lastSeenAt, now),
      oneLine(lanes.map(({ name, slots, running }) => `${name} ${running}/${slots}`).join(", ")),
    ]),
    { width: lineWidth() },
  );
}
