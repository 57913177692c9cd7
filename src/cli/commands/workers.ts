import { Command } from "commander";
import type { WorkerInfo } from "../../client/index.ts";
import { openClient, type ServerFlags, withServerOptions } from "../flags/server-options.ts";
import { oneLine } from "../terminal/display-text.ts";
import { lineWidth, print } from "../terminal/print.ts";
import { type PageFlags, printPages, withPageOptions } from "../views/pages.ts";
import { tableLines } from "../views/table.ts";
import { shownAgo } from "../views/times.ts";
import { forEachId } from "./each-id.ts";

/** `rota workers`: the processes elsewhere that pull tasks. */
export function workersCommand(): Command {
  return new Command("workers")
    .description("List the workers that pull tasks, drain them or remove them.")
    .addCommand(listCommand(), { isDefault: true })
    .addCommand(drainCommand())
    .addCommand(removeCommand());
}

function listCommand(): Command {
  const command = new Command("list").description("List the workers of the tenant, ordered by name.");
  return withServerOptions(withPageOptions(command)).action(async (flags: PageFlags) => {
    const { workers } = openClient(flags);
    await printPages(flags, {
      noun: "workers",
      read: (position) => workers.list(position),
      cursor: ({ nextCursor }) => nextCursor,
      lines: (page) => workersTable(page.workers, Date.now()),
      none: "No worker is registered. Start one: rota worker --agent ID -- COMMAND",
    });
  });
}

function drainCommand(): Command {
  const command = new Command("drain")
    .description("Let workers finish their tasks and end.")
    .argument("<id...>", "ids of workers");
  return withServerOptions(command).action((ids: string[], flags: ServerFlags) => {
    const { workers } = openClient(flags);
    return forEachId(ids, flags, {
      act: (id) => workers.drain(id),
      say: ({ id }) => print(`${id} drains`),
    });
  });
}

function removeCommand(): Command {
  const command = new Command("remove")
    .description("Remove workers. Their tasks go back to the queue.")
    .argument("<id...>", "ids of workers");
  return withServerOptions(command).action((ids: string[], flags: ServerFlags) => {
    const { workers } = openClient(flags);
    return forEachId(ids, flags, {
      act: async (id) => ({ id, ...(await workers.delete(id)) }),
      say: ({ id, released }) => print(`${id} removed, ${released.length} tasks returned to the queue`),
    });
  });
}

function workersTable(workers: readonly WorkerInfo[], now: number): string[] {
  return tableLines(
    [
      { title: "WORKER" },
      { title: "NAME", shrinksTo: 12 },
      { title: "STATE" },
      { title: "AGENTS", shrinksTo: 12 },
      { title: "RUNNING/SLOTS" },
      { title: "DONE 10M" },
      { title: "FAILED" },
      { title: "SEEN" },
      { title: "VERSION", shrinksTo: 8 },
    ],
    workers.map((worker) => [
      worker.id,
      oneLine(worker.name),
      worker.state,
      oneLine(worker.agents.join(", ")),
      `${worker.running}/${worker.slots}`,
      String(worker.doneLast10m),
      String(worker.failedLast10m),
      shownAgo(worker.lastSeenAt, now),
      oneLine(worker.version ?? "–"),
    ]),
    { width: lineWidth() },
  );
}
